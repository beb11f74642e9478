// ReuseModel: how likely a block is to be used again at each age, learnt online, and what a block
// is therefore worth: the most hits that it can be expected to bring for each request that it is
// held from now on, over all times at which one could give up (the Gittins index of its hazard;
// J. C. Gittins, "Bandit processes and dynamic allocation indices", 1979; used for caches as hit
// density in "LHD: improving cache hit rate by maximizing hit density", NSDI 2018).
//
// A cell is a combination of features. Cells form a tree, one feature more at each level: touches,
// turn, last, fresh, gap. For an age bin with h hits and s survivals,
//     p = (h + m * p of the parent) / (h + s + m),   m = kPriorWeight,
// so that a rare combination answers as its parent does. The parent of the first level continues
// the hazard of the bin before: p = 1 - (a / b)^alpha for the bin's ages a to b, with alpha that of
// the bin before (kAlphaAtStart at first), since waiting times fall by powers. Each
// kRequestsAnEpoch requests all counts fade by kFade, and values are solved anew when asked for.
//
// Counts are of runs of blocks that one request touched alike (reuse_groups.h), not of blocks: a
// long prompt teaches as much as a short one. The clock counts requests.
//
// Each policy has its own, so that no tenant can teach another's; one for all of a factory is
// taught by each of them and asked once by each, when it begins: for kBeginRuns runs at most.
//
// Not thread-safe. Deterministic. About 600 bytes for each combination that was seen, of kCells at
// most.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache_node/store/policies/reuse/reuse_ages.h"
#include "cache_node/store/policies/reuse/reuse_features.h"

namespace cairn::node {

class ReuseModel {
 public:
  using Cell = uint16_t;
  // A value as a whole number that orders as the value does: its logarithm in steps of 1/32.
  using Worth = uint16_t;
  static constexpr size_t kWorthMax = 1023;

  static constexpr uint64_t kRequestsAnEpoch = 256;

  // Runs of any number of touches, at one age, that a model begins with: few beside its own.
  static constexpr float kBeginRuns = 100;

  // `all`: what it begins with when it is first used, and teaches. Null: nothing, and none.
  explicit ReuseModel(std::shared_ptr<ReuseModel> all = nullptr);

  // A request came. Returns its number, which is the time from now on.
  uint64_t Tick();
  uint64_t now() const { return now_; }

  Cell CellOf(const ReuseFeatures& features);

  // A run of that cell was used at an age of that bin, or outlived the bin.
  void CountHit(Cell cell, size_t bin) {
    cells_[cell].hits[bin] += 1;
    if (all_ != nullptr) all_->CountHit(cells_[cell].of_all, bin);
  }
  void CountSurvived(Cell cell, size_t bin, float runs) {
    float& survived = cells_[cell].survived[bin];
    survived = std::max(0.0f, survived + runs);
    if (all_ != nullptr) all_->CountSurvived(cells_[cell].of_all, bin, runs);
  }

  // What such a block is worth at an age of that bin.
  Worth WorthOf(Cell cell, size_t bin) {
    if (cells_[cell].solved_in != epoch_) Solve(cell);
    return cells_[cell].worth[bin];
  }

  uint64_t MemoryBytes() const;

 private:
  static constexpr float kPriorWeight = 320;
  static constexpr float kFade = 0.97f;
  static constexpr float kAlphaAtStart = 0.3f;
  static constexpr float kAlphaKept = 0.9f;  // Of alpha, from bin to bin.

  static constexpr size_t kLevels = 5;
  static constexpr std::array<uint32_t, kLevels> kLevelSizes = {
      kReuseTouches, kReuseTouches* kReuseTurns, kReuseTouches* kReuseTurns * 2,
      kReuseTouches* kReuseTurns * 2 * kReuseFresh,
      kReuseTouches* kReuseTurns * 2 * kReuseFresh* kReuseGaps};
  static constexpr uint32_t kCells =
      kLevelSizes[0] + kLevelSizes[1] + kLevelSizes[2] + kLevelSizes[3] + kLevelSizes[4];
  static constexpr Cell kNone = UINT16_MAX;
  static_assert(kCells < kNone);

  struct Statistics {
    // Leaves are counted into; the others are sums of their children, made each epoch.
    std::array<float, kReuseAgeBins> hits{};
    std::array<float, kReuseAgeBins> survived{};
    std::array<float, kReuseAgeBins> hazard{};
    std::array<Worth, kReuseAgeBins> worth{};
    Cell parent = kNone;
    Cell of_all = kNone;
    bool leaf = false;
    uint64_t solved_in = 0;
  };

  Cell CellAt(size_t level, uint32_t place);
  void Begin();
  void EndEpoch();
  void SumUp();
  void Solve(Cell cell);
  void SolveHazard(Statistics* cell);

  const std::shared_ptr<ReuseModel> all_;
  bool begun_ = false;
  uint64_t now_ = 0;
  uint64_t epoch_ = 1;
  std::vector<Statistics> cells_;  // Parents before their children.
  std::array<std::vector<Cell>, kLevels> places_;
};

}  // namespace cairn::node
