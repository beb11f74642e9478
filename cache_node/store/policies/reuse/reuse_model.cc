#include "cache_node/store/policies/reuse/reuse_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cache_node/store/policies/reuse/reuse_worth.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

// log((b + 1) / (a + 1)) of each bin's ages a to b: ages count from one, so that the first is not
// 0.
std::array<float, kReuseAgeBins> MakeBinLogs() {
  std::array<float, kReuseAgeBins> logs{};
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    logs[bin] = std::log(static_cast<float>(kReuseAgeEdges[bin + 1] + 1) /
                         static_cast<float>(kReuseAgeEdges[bin] + 1));
  }
  return logs;
}

const std::array<float, kReuseAgeBins>& BinLogs() {
  static const std::array<float, kReuseAgeBins> logs = MakeBinLogs();
  return logs;
}

// Nothing, once it is: a float that only fades ends among the smallest there are, never at zero,
// and a processor takes a hundred times as long for those.
float Faded(float count, float kept) {
  constexpr float kNothing = 1e-6f;
  const float faded = count * kept;
  return faded < kNothing ? 0.0f : faded;
}

ReuseModel::Worth ToWorth(double hits_a_request) {
  constexpr double kSteps = 32;    // An octave.
  constexpr double kLowest = -28;  // 2^-28 hits a request, and below.
  if (!(hits_a_request > 0)) return 0;
  const double steps = (std::log2(hits_a_request) - kLowest) * kSteps;
  return static_cast<ReuseModel::Worth>(std::clamp<double>(steps, 0, ReuseModel::kWorthMax));
}

}  // namespace

ReuseModel::ReuseModel(std::shared_ptr<ReuseModel> all) : all_(std::move(all)) {
  for (size_t level = 0; level < kLevels; ++level) places_[level].assign(kLevelSizes[level], kNone);
}

uint64_t ReuseModel::Tick() {
  if (!begun_) Begin();
  if (all_ != nullptr) all_->Tick();
  ++now_;
  if (now_ % kRequestsAnEpoch == 0) EndEpoch();
  return now_;
}

ReuseModel::Cell ReuseModel::CellOf(const ReuseFeatures& features) {
  CAIRN_CHECK(features.touches >= 1 && features.touches <= kReuseTouches);
  CAIRN_CHECK(features.turn < kReuseTurns && features.fresh < kReuseFresh &&
              features.gap < kReuseGaps);
  if (!begun_) Begin();
  uint32_t place = features.touches - 1u;
  place = place * kReuseTurns + features.turn;
  place = place * 2 + (features.last ? 1 : 0);
  place = place * kReuseFresh + features.fresh;
  place = place * kReuseGaps + features.gap;
  return CellAt(kLevels - 1, place);
}

ReuseModel::Cell ReuseModel::CellAt(size_t level, uint32_t place) {
  const Cell known = places_[level][place];
  if (known != kNone) return known;
  Cell parent = kNone;
  if (level > 0) {
    parent = CellAt(level - 1, place / (kLevelSizes[level] / kLevelSizes[level - 1]));
  }
  const Cell cell = static_cast<Cell>(cells_.size());
  cells_.emplace_back();
  cells_.back().parent = parent;
  cells_.back().leaf = level + 1 == kLevels;
  if (all_ != nullptr) cells_.back().of_all = all_->CellAt(level, place);
  places_[level][place] = cell;
  return cell;
}

// Takes what all know, each age thinned to so many runs of each number of touches. Not in the
// constructor: a class may be made and dropped without a block.
void ReuseModel::Begin() {
  begun_ = true;
  if (all_ == nullptr) return;
  cells_ = all_->cells_;
  places_ = all_->places_;
  for (size_t i = 0; i < cells_.size(); ++i) {
    cells_[i].of_all = static_cast<Cell>(i);
    cells_[i].solved_in = 0;
  }
  SumUp();
  for (Statistics& cell : cells_) {
    if (!cell.leaf) continue;
    const Statistics* first = &cell;
    while (first->parent != kNone) first = &cells_[first->parent];
    for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
      const float runs = first->hits[bin] + first->survived[bin];
      if (runs <= kBeginRuns) continue;
      cell.hits[bin] *= kBeginRuns / runs;
      cell.survived[bin] *= kBeginRuns / runs;
    }
  }
  SumUp();
}

void ReuseModel::EndEpoch() {
  ++epoch_;
  for (Statistics& cell : cells_) {
    for (float& count : cell.hits) count = Faded(count, kFade);
    for (float& count : cell.survived) count = Faded(count, kFade);
  }
  SumUp();
}

// Leaves are counted into; all others are made from them, from the last cell up.
void ReuseModel::SumUp() {
  for (Statistics& cell : cells_) {
    if (cell.leaf) continue;
    cell.hits.fill(0);
    cell.survived.fill(0);
  }
  for (size_t i = cells_.size(); i-- > 0;) {
    if (cells_[i].parent == kNone) continue;
    CAIRN_CHECK(cells_[i].parent < i);
    Statistics& parent = cells_[cells_[i].parent];
    for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
      parent.hits[bin] += cells_[i].hits[bin];
      parent.survived[bin] += cells_[i].survived[bin];
    }
  }
}

void ReuseModel::Solve(Cell cell) {
  Statistics& statistics = cells_[cell];
  if (statistics.solved_in == epoch_) return;
  if (statistics.parent != kNone) Solve(statistics.parent);
  SolveHazard(&statistics);
  const std::array<double, kReuseAgeBins> worth = ReuseWorth(statistics.hazard);
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) statistics.worth[bin] = ToWorth(worth[bin]);
  statistics.solved_in = epoch_;
}

void ReuseModel::SolveHazard(Statistics* cell) {
  const std::array<float, kReuseAgeBins>& logs = BinLogs();
  float alpha = kAlphaAtStart;
  for (size_t bin = 0; bin < kReuseAgeBins; ++bin) {
    const float prior = cell->parent == kNone ? 1 - std::exp(-alpha * kAlphaKept * logs[bin])
                                              : cells_[cell->parent].hazard[bin];
    const float seen = cell->hits[bin] + cell->survived[bin];
    const float hazard = (cell->hits[bin] + kPriorWeight * prior) / (seen + kPriorWeight);
    cell->hazard[bin] = hazard;
    if (cell->parent == kNone) {
      constexpr float kSurelyUsed = 1e-9f;
      alpha = -std::log(std::max(kSurelyUsed, 1 - hazard)) / logs[bin];
    }
  }
}

uint64_t ReuseModel::MemoryBytes() const {
  uint64_t bytes = cells_.capacity() * sizeof(Statistics);
  for (const std::vector<Cell>& places : places_) bytes += places.capacity() * sizeof(Cell);
  return bytes;
}

}  // namespace cairn::node
