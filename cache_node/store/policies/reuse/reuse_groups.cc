#include "cache_node/store/policies/reuse/reuse_groups.h"

#include <algorithm>
#include <bit>

namespace cairn::node {

GroupId ReuseGroups::Make() {
  GroupId id = static_cast<GroupId>(groups_.size());
  if (free_.empty()) {
    groups_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  ReuseGroup& group = groups_[id];
  group = ReuseGroup{};
  group.serial = next_serial_++;
  group.touched_at = model_->now();
  group.alive = true;
  AppendByAge(id, 0);
  return id;
}

GroupId ReuseGroups::MakeBeside(GroupId group) {
  const GroupId id = Make();
  TakeFromAge(id);
  ReuseGroup& made = groups_[id];
  ReuseGroup& like = At(group);
  const uint64_t serial = made.serial;
  made = like;
  made.serial = serial;
  made.blocks = made.away = 0;
  made.ranked = false;
  made.may_go = kNoBlock;
  made.ghost = false;
  made.rank_before = made.rank_after = kNoGroup;
  made.age_before = group;  // Right after it, so that the list stays in order.
  List& list = by_age_[like.age_bin];
  (like.age_after != kNoGroup ? groups_[like.age_after].age_before : list.last) = id;
  like.age_after = id;
  made.in_use_order = false;
  if (like.in_use_order) PutInUseOrder(id, group);
  return id;
}

bool ReuseGroups::IsStill(GroupId group, uint64_t serial) const {
  return group < groups_.size() && groups_[group].alive && groups_[group].serial == serial;
}

void ReuseGroups::Drop(GroupId id) {
  ReuseGroup& group = At(id);
  CAIRN_CHECK(group.blocks == 0 && group.may_go == kNoBlock);
  if (group.ghost) NoLongerGhost(id);
  if (group.in_use_order) TakeFromUseOrder(id);
  TakeFromRanks(id);
  TakeFromAge(id);
  group.alive = false;
  free_.push_back(id);
}

void ReuseGroups::AppendByAge(GroupId id, uint8_t bin) {
  ReuseGroup& group = groups_[id];
  List& list = by_age_[bin];
  group.age_bin = bin;
  group.age_before = list.last;
  group.age_after = kNoGroup;
  (list.last != kNoGroup ? groups_[list.last].age_after : list.first) = id;
  list.last = id;
}

void ReuseGroups::TakeFromAge(GroupId id) {
  ReuseGroup& group = groups_[id];
  List& list = by_age_[group.age_bin];
  (group.age_before != kNoGroup ? groups_[group.age_before].age_after : list.first) =
      group.age_after;
  (group.age_after != kNoGroup ? groups_[group.age_after].age_before : list.last) =
      group.age_before;
}

void ReuseGroups::AppendInOrder(GroupId id, List* list) {
  ReuseGroup& group = groups_[id];
  group.rank_before = list->last;
  group.rank_after = kNoGroup;
  (list->last != kNoGroup ? groups_[list->last].rank_after : list->first) = id;
  list->last = id;
}

void ReuseGroups::TakeFromOrder(GroupId id, List* list) {
  ReuseGroup& group = groups_[id];
  (group.rank_before != kNoGroup ? groups_[group.rank_before].rank_after : list->first) =
      group.rank_after;
  (group.rank_after != kNoGroup ? groups_[group.rank_after].rank_before : list->last) =
      group.rank_before;
}

void ReuseGroups::Advance() {
  // From the oldest bin down, so that those of a bin are older than those of the bin before.
  size_t moves = 0;
  for (size_t bin = kReuseAgeBins - 1; bin-- > 0;) {
    while (by_age_[bin].first != kNoGroup) {
      const GroupId id = by_age_[bin].first;
      ReuseGroup& group = groups_[id];
      const uint64_t age = model_->now() - group.touched_at;
      if (age < kReuseAgeEdges[bin + 1]) break;
      if (moves++ == kMovesMax) return RankSomeAnew();
      TakeFromAge(id);
      AppendByAge(id, static_cast<uint8_t>(OlderBin(group.cell, bin, age)));
      if (group.ranked) Rank(id);
    }
  }
  RankSomeAnew();
}

// The bin of that age, from `bin` on. Each one before it was outlived.
size_t ReuseGroups::OlderBin(ReuseModel::Cell cell, size_t bin, uint64_t age) {
  while (bin + 1 < kReuseAgeBins && age >= kReuseAgeEdges[bin + 1]) {
    model_->CountSurvived(cell, bin++, 1);
  }
  return bin;
}

// What the model learnt moves the worth of groups that do not grow older for long: each group is
// looked at once an epoch, while there are no more than kMovesMax for each request of one.
void ReuseGroups::RankSomeAnew() {
  const size_t count = std::min(kMovesMax, groups_.size() / ReuseModel::kRequestsAnEpoch + 1);
  for (size_t i = 0; i < count && !groups_.empty(); ++i) {
    cursor_ = cursor_ + 1 < groups_.size() ? cursor_ + 1 : 0;
    if (groups_[cursor_].alive && groups_[cursor_].ranked) Rank(static_cast<GroupId>(cursor_));
  }
}

uint16_t ReuseGroups::LevelOf(const ReuseGroup& group) {
  constexpr uint16_t kPriorityBits = 8;
  return static_cast<uint16_t>((group.orphaned ? 0u : 1u << kPriorityBits) | group.priority);
}

size_t ReuseGroups::Level::FirstFilled() const {
  for (size_t word = 0; word < filled.size(); ++word) {
    if (filled[word] != 0)
      return word * kWordBits + static_cast<size_t>(std::countr_zero(filled[word]));
  }
  CAIRN_CHECK(false);
  return 0;
}

void ReuseGroups::AddBlock(GroupId id) {
  ReuseGroup& group = At(id);
  ++group.blocks;
  if (!group.in_use_order) PutInUseOrder(id, by_use_.last);
}

void ReuseGroups::TakeBlock(GroupId id) {
  ReuseGroup& group = At(id);
  CAIRN_CHECK(group.blocks > 0 && group.in_use_order);
  if (--group.blocks == 0) TakeFromUseOrder(id);
}

std::optional<UseStamp> ReuseGroups::OldestStamp() const {
  if (by_use_.first == kNoGroup) return std::nullopt;
  return groups_[by_use_.first].stamp;
}

void ReuseGroups::PutInUseOrder(GroupId id, GroupId after) {
  ReuseGroup& group = groups_[id];
  group.use_before = after;
  group.use_after = after != kNoGroup ? groups_[after].use_after : by_use_.first;
  (group.use_before != kNoGroup ? groups_[group.use_before].use_after : by_use_.first) = id;
  (group.use_after != kNoGroup ? groups_[group.use_after].use_before : by_use_.last) = id;
  group.in_use_order = true;
}

void ReuseGroups::TakeFromUseOrder(GroupId id) {
  ReuseGroup& group = groups_[id];
  (group.use_before != kNoGroup ? groups_[group.use_before].use_after : by_use_.first) =
      group.use_after;
  (group.use_after != kNoGroup ? groups_[group.use_after].use_before : by_use_.last) =
      group.use_before;
  group.in_use_order = false;
}

void ReuseGroups::Rank(GroupId id) {
  ReuseGroup& group = At(id);
  if (group.may_go == kNoBlock) return TakeFromRanks(id);
  const ReuseModel::Worth worth = model_->WorthOf(group.cell, group.age_bin);
  if (group.ranked && group.worth == worth) return;
  TakeFromRanks(id);
  std::unique_ptr<Level>& level = levels_[LevelOf(group)];
  if (level == nullptr) level = std::make_unique<Level>();
  AppendInOrder(id, &level->lists[worth]);
  level->filled[worth / Level::kWordBits] |= uint64_t{1} << (worth % Level::kWordBits);
  ++level->groups;
  group.worth = worth;
  group.ranked = true;
}

void ReuseGroups::TakeFromRanks(GroupId id) {
  ReuseGroup& group = groups_[id];
  if (!group.ranked) return;
  auto it = levels_.find(LevelOf(group));
  CAIRN_CHECK(it != levels_.end());
  Level& level = *it->second;
  List& list = level.lists[group.worth];
  TakeFromOrder(id, &list);
  if (list.first == kNoGroup) {
    level.filled[group.worth / Level::kWordBits] &=
        ~(uint64_t{1} << (group.worth % Level::kWordBits));
  }
  group.ranked = false;
  // The only one is kept: it is filled again soon.
  if (--level.groups == 0 && levels_.size() > 1) levels_.erase(it);
}

std::optional<GroupId> ReuseGroups::First() const {
  for (const auto& [number, level] : levels_) {
    if (level->groups > 0) return level->lists[level->FirstFilled()].first;
  }
  return std::nullopt;
}

void ReuseGroups::BecomeGhost(GroupId id) {
  ReuseGroup& group = At(id);
  CAIRN_CHECK(!group.ghost && group.blocks == 0 && group.away > 0 && !group.ranked);
  if (const std::optional<GroupId> other = GhostOf(group.away_key)) Drop(*other);
  while (ghost_keys_.size() >= GhostsMax()) Drop(ghosts_.first);
  group.ghost = true;
  ghost_keys_.emplace(group.away_key, id);
  AppendInOrder(id, &ghosts_);
}

size_t ReuseGroups::GhostsMax() const {
  return std::max(kGhostsMax, groups_.size() - free_.size() - ghost_keys_.size());
}

void ReuseGroups::NoLongerGhost(GroupId id) {
  ReuseGroup& group = At(id);
  CAIRN_CHECK(group.ghost);
  TakeFromOrder(id, &ghosts_);
  CAIRN_CHECK(ghost_keys_.erase(group.away_key) == 1);
  group.ghost = false;
}

std::optional<GroupId> ReuseGroups::GhostOf(uint64_t key) const {
  const auto it = ghost_keys_.find(key);
  if (it == ghost_keys_.end()) return std::nullopt;
  return it->second;
}

void ReuseGroups::CountHit(GroupId id, uint64_t request, uint64_t came_at) {
  ReuseGroup& group = At(id);
  if (group.hit_counted == request) return;
  group.hit_counted = request;
  // Requests that passed it by before this one. It may have been counted as passed by this one too.
  const uint64_t passed = came_at > group.touched_at ? came_at - group.touched_at - 1 : 0;
  size_t bin = group.age_bin;
  while (kReuseAgeEdges[bin] > passed) model_->CountSurvived(group.cell, --bin, -1);
  bin = OlderBin(group.cell, bin, passed);  // Where it waits to be moved on.
  model_->CountHit(group.cell, bin);
}

uint64_t ReuseGroups::MemoryBytes() const {
  constexpr uint64_t kBytesAGhostKey = 2 * sizeof(std::pair<uint64_t, GroupId>);
  return groups_.capacity() * sizeof(ReuseGroup) + free_.capacity() * sizeof(GroupId) +
         ghost_keys_.size() * kBytesAGhostKey + levels_.size() * sizeof(Level);
}

}  // namespace cairn::node
