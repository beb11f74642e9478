// Witnesses: all that watch one simulation, as one. Told in the order in which they were added.
// Borrows them.
#pragma once

#include <vector>

#include "tests/sim/witness.h"

namespace cairn::sim {

class Witnesses final : public Witness {
 public:
  void Add(Witness* witness) { all_.push_back(witness); }

  void OnNodeStarted(const Life& node) override {
    for (Witness* one : all_) one->OnNodeStarted(node);
  }
  void OnNodeDied(const Life& node) override {
    for (Witness* one : all_) one->OnNodeDied(node);
  }
  void OnNodeCall(const SeenCall& call) override {
    for (Witness* one : all_) one->OnNodeCall(call);
  }
  void OnFrameSent(const SeenFrame& frame) override {
    for (Witness* one : all_) one->OnFrameSent(frame);
  }
  void OnGetEnded(const SeenGetEnd& end) override {
    for (Witness* one : all_) one->OnGetEnded(end);
  }
  void OnFrameArrived(absl::Span<const BlockKey> keys, uint64_t digest_sent,
                      uint64_t digest_now) override {
    for (Witness* one : all_) one->OnFrameArrived(keys, digest_sent, digest_now);
  }
  void OnUsed(const SeenUse& use) override {
    for (Witness* one : all_) one->OnUsed(use);
  }
  void OnPulled(const SeenPull& pull) override {
    for (Witness* one : all_) one->OnPulled(pull);
  }
  void OnDamaged(const Life& node, const BlockKey& key) override {
    for (Witness* one : all_) one->OnDamaged(node, key);
  }
  void OnRouterCall(const SeenCall& call) override {
    for (Witness* one : all_) one->OnRouterCall(call);
  }
  void OnLook() override {
    for (Witness* one : all_) one->OnLook();
  }
  void OnQuiet() override {
    for (Witness* one : all_) one->OnQuiet();
  }

 private:
  std::vector<Witness*> all_;
};

}  // namespace cairn::sim
