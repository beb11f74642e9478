// ShownBlocks: the base of invariants about blocks that a node shows: says is present, or hands out
// bytes of.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "tests/sim/invariants/invariant.h"

namespace cairn::sim {

class ShownBlocks : public Invariant {
 public:
  using Invariant::Invariant;

  void OnNodeCall(const SeenCall& call) final;
  void OnFrameSent(const SeenFrame& frame) final;

 protected:
  // A block that the caller is shown. `how` says by what.
  struct Shown {
    Life node;
    const std::string& tenant;  // The caller's.
    Fingerprint fingerprint;
    BlockKey key;
    const char* how;
  };
  virtual void OnShown(const Shown& shown) = 0;
  // A lookup says this of a block, shown or not.
  virtual void OnSaid(const Shown& /*said*/, v1::BlockState /*state*/) {}
  // One of the two names under which the caller may see the block: its own, or everyone's.
  static Truth::BlockName Own(const Shown& shown) {
    return {shown.fingerprint, shown.tenant, shown.key};
  }
  static Truth::BlockName Public(const Shown& shown) {
    return {shown.fingerprint, kPublicTenant, shown.key};
  }
  static std::string Describe(const Shown& shown);

 private:
  // A request that is repeated gets the answer of its first time, however old: it shows nothing
  // new, and the lease that it names is as gone as its blocks.
  std::set<std::tuple<Life, std::string, std::string>> answered_;
};

}  // namespace cairn::sim
