// 3.9: nobody is shown another tenant's block, by key, token or lease, at a node or by the router.
#pragma once

#include "tests/sim/invariants/shown_blocks.h"

namespace cairn::sim {

class NoCrossingOfTenants final : public ShownBlocks {
 public:
  explicit NoCrossingOfTenants(const Scene* scene) : ShownBlocks(scene, "no_crossing_of_tenants") {}

  void OnRouterCall(const SeenCall& call) override;

 private:
  void OnShown(const Shown& shown) override;
  void OnSaid(const Shown& said, v1::BlockState state) override;
  bool Readable(const BlockKey& key, const std::string& tenant) const;
  // How many of the keys, from the first, the tenant may know of.
  size_t ReadablePrefix(const std::string& keys, const std::string& tenant) const;
};

}  // namespace cairn::sim
