// DiskTierDriver: uses a disk tier at random, under a seed, and says on the way what it is about
// to do and what has been answered; DiskTierModel listens.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cache_node/tiers/disk/disk_tier.h"

namespace cairn::testing {

class DiskTierDriver {
 public:
  // Of each record.
  static constexpr size_t kPayloadBytes = 3000;
  // A line each:
  //   begin FILE FIRST COUNT, finished FILE, dropping FILE, dropped FILE, marking FILE SLOT,
  //   marked FILE SLOT, fencing SEQUENCE, fenced SEQUENCE
  using Say = std::function<void(const std::string&)>;

  // Records are numbered from `first` on. Borrows the tier.
  DiskTierDriver(node::DiskTier* tier, uint64_t seed, uint64_t first, Say say);

  // Once, at first: learns which files are there.
  absl::Status Recover();
  // One or a few calls; the first error of them, after which there are no more steps.
  absl::Status Step();

 private:
  static constexpr size_t kFilesMax = 6;

  absl::Status WriteFile(bool finish);
  absl::Status Mark();
  absl::Status Fence();
  absl::Status Drop();

  node::DiskTier* const tier_;
  std::mt19937_64 random_;
  uint64_t number_;
  const Say say_;
  std::vector<uint64_t> files_;
};

}  // namespace cairn::testing
