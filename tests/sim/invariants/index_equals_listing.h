// 4, 5: where the router says EXACT of a node and nothing is on its way, it knows of exactly the
// blocks that the node has.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class IndexEqualsListing final : public Invariant {
 public:
  explicit IndexEqualsListing(const Scene* scene) : Invariant(scene, "index_equals_listing") {}

  void OnLook() override { Compare(); }
  void OnQuiet() override;

  // Of nodes that could be compared so far.
  uint64_t comparisons() const { return comparisons_; }

 private:
  // Whose blocks: namespace and tenant.
  using Owner = std::pair<const NamespaceHandle*, std::string>;

  bool Comparable(const SimRouter& router, size_t place) const;
  void Compare();
  void CompareKeys(const SimRouter& router, const std::vector<size_t>& places, const Owner& owner,
                   const std::vector<BlockKey>& keys);

  uint64_t comparisons_ = 0;
};

}  // namespace cairn::sim
