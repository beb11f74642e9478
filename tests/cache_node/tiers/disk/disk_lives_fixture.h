// DiskLivesFixture: a tier whose process ends again and again, and the check that each start finds
// what was answered before, and nothing else.
#pragma once

#include "tests/cache_node/tiers/disk/disk_tier_fixture.h"
#include "tests/cache_node/tiers/disk/disk_tier_model.h"

namespace cairn::testing {

class DiskLivesFixture : public DiskTierFixture {
 protected:
  // Opens the tier, holds all that it finds against the model, and closes it.
  void CheckWhatIsThere();

  DiskTierModel model_;
  int records_ = 0;  // Read so far.
};

}  // namespace cairn::testing
