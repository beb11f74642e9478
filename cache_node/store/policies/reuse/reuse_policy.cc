#include "cache_node/store/policies/reuse/reuse_policy.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

uint8_t OneMore(uint8_t touches) {
  return static_cast<uint8_t>(std::min<uint32_t>(touches + 1u, kReuseTouches));
}

}  // namespace

ReusePolicy::ReusePolicy(std::shared_ptr<ReuseModel> all)
    : model_(std::move(all)), groups_(&model_) {}

ReusePolicy::Block& ReusePolicy::Known(BlockHandle block) {
  CAIRN_CHECK(block < blocks_.size() && blocks_[block].group != kNoGroup);
  return blocks_[block];
}

void ReusePolicy::LinkMayGo(BlockHandle block) {
  Block& state = blocks_[block];
  ReuseGroup& group = groups_.At(state.group);
  state.may_go_before = kNoBlock;
  state.may_go_after = group.may_go;
  if (group.may_go != kNoBlock) blocks_[group.may_go].may_go_before = block;
  group.may_go = block;
}

void ReusePolicy::UnlinkMayGo(BlockHandle block) {
  Block& state = blocks_[block];
  ReuseGroup& group = groups_.At(state.group);
  if (state.may_go_after != kNoBlock) {
    blocks_[state.may_go_after].may_go_before = state.may_go_before;
  }
  if (state.may_go_before != kNoBlock) {
    blocks_[state.may_go_before].may_go_after = state.may_go_after;
  } else {
    CAIRN_CHECK(group.may_go == block);
    group.may_go = state.may_go_after;
  }
}

void ReusePolicy::Hold(BlockHandle block, GroupId id) {
  Block& state = blocks_[block];
  ReuseGroup& group = groups_.At(id);
  if (group.ghost) groups_.NoLongerGhost(id);
  state.group = id;
  groups_.AddBlock(id);
  if (state.may_go) {
    LinkMayGo(block);
    groups_.Rank(id);
  }
}

void ReusePolicy::Release(BlockHandle block) {
  Block& state = blocks_[block];
  ReuseGroup& group = groups_.At(state.group);
  if (state.may_go) {
    UnlinkMayGo(block);
    if (group.may_go == kNoBlock) groups_.Rank(state.group);
  }
  groups_.TakeBlock(state.group);
}

ReuseRequest* ReusePolicy::BeginRequest(UseStamp stamp) {
  model_.Tick();
  groups_.Advance();
  ReuseRequest* request = requests_.Begin(stamp);
  request->came_at = model_.now();
  return request;
}

void ReusePolicy::Precede(ReuseRequest* request, const ReuseGroup& before) {
  request->before_blocks = before.prompt_blocks;
  request->before_turn = before.features.turn;
  request->before_at = before.touched_at;
}

void ReusePolicy::Missed(const BlockTraits& block, UseStamp stamp) {
  ReuseRequest* request = requests_.Find(stamp);
  if (request == nullptr) {
    request = BeginRequest(stamp);
    request->prompt_blocks = std::max(block.prompt_blocks, block.depth + 1);
    request->known_blocks = block.depth;
    if (block.parent != kNoBlock) {
      ReuseGroup& parent = groups_.At(Known(block.parent).group);
      Precede(request, parent);
      if (parent.away > 0 && parent.away_key == block.key) {
        request->remembered_touches = parent.features.touches;
        request->remembered_left = parent.away;
        groups_.CountHit(blocks_[block.parent].group, request->serial, request->came_at);
        parent.away = 0;
      }
    }
  }
  if (request->settled) return;
  const uint8_t touches = OneMore(TouchesOf(request, block));
  const bool last = touches == 1 && block.depth + 1 == request->prompt_blocks;
  std::vector<MissedRun>& runs = request->runs;
  const bool follows = !runs.empty() && runs.back().to == block.depth;
  const bool full = runs.size() == ReuseRequest::kRunsMax;
  if (follows && (full || (runs.back().touches == touches && !last))) {
    ++runs.back().to;
  } else if (!full) {
    runs.push_back({.from = block.depth,
                    .to = block.depth + 1,
                    .touches = touches,
                    .last = last,
                    .key = block.key,
                    .declined_key = std::nullopt});
  }
  if (block.depth + 1 == request->prompt_blocks) Settle(request);
}

// How often it was asked for before, as far as that is remembered without a gap from the start.
uint8_t ReusePolicy::TouchesOf(ReuseRequest* request, const BlockTraits& block) {
  if (request->remembered_left == 0 && !request->nothing_remembered) {
    if (const std::optional<GroupId> ghost = groups_.GhostOf(block.key)) {
      const ReuseGroup& group = groups_.At(*ghost);
      groups_.CountHit(*ghost, request->serial, request->came_at);
      Precede(request, group);
      request->remembered_touches = group.features.touches;
      request->remembered_left = group.away;
      groups_.Drop(*ghost);
    } else {
      request->nothing_remembered = true;
    }
  }
  if (request->remembered_left == 0) return 0;
  --request->remembered_left;
  ++request->known_blocks;
  return request->remembered_touches;
}

void ReusePolicy::Settle(ReuseRequest* request) {
  CAIRN_CHECK(!request->settled);
  request->settled = true;
  // The last block of the prompt before need not be part of this one: it may not have been full.
  const bool continues =
      request->before_blocks > 0 && request->known_blocks + 1 >= request->before_blocks;
  ReuseFeatures& features = request->features;
  features.turn =
      continues
          ? static_cast<uint8_t>(std::min<uint32_t>(request->before_turn + 1u, kReuseTurns - 1))
          : uint8_t{0};
  // More are known than the prompt has where a caller asks for some of it twice.
  features.fresh = FactorsOfFour(
      request->prompt_blocks - std::min(request->known_blocks, request->prompt_blocks),
      kReuseFresh);
  features.gap =
      FactorsOfFour(request->before_at == 0 ? 0 : model_.now() - request->before_at, kReuseGaps);
  for (MissedRun& run : request->runs) {
    ReuseFeatures of_run = features;
    of_run.touches = run.touches;
    of_run.last = run.last;
    run.group = MakeGroup(request, of_run, kPriorityDefault, false);
    ReuseGroup& group = groups_.At(run.group);
    run.group_serial = group.serial;
    group.away = run.to - run.from;
    group.away_key = run.key;
    groups_.BecomeGhost(run.group);
  }
}

GroupId ReusePolicy::MakeGroup(ReuseRequest* request, const ReuseFeatures& features,
                               uint8_t priority, bool orphaned) {
  const GroupId id = groups_.Make();
  ReuseGroup& group = groups_.At(id);
  group.request = request->serial;
  group.stamp = std::max(request->lookup, request->reserve);
  group.prompt_blocks = request->prompt_blocks;
  group.features = features;
  group.cell = model_.CellOf(features);
  group.priority = priority;
  group.orphaned = orphaned;
  request->AddGroup({.group = id, .serial = group.serial});
  return id;
}

GroupId ReusePolicy::GroupFor(ReuseRequest* request, const ReuseFeatures& features,
                              uint8_t priority, bool orphaned) {
  const ReuseModel::Cell cell = model_.CellOf(features);
  for (const ReuseRequest::Made& made : request->groups) {
    if (!groups_.IsStill(made.group, made.serial)) continue;
    const ReuseGroup& group = groups_.At(made.group);
    if (group.cell == cell && group.priority == priority && group.orphaned == orphaned) {
      return made.group;
    }
  }
  return MakeGroup(request, features, priority, orphaned);
}

void ReusePolicy::Used(BlockHandle block, UseStamp stamp) {
  Block& state = Known(block);
  const GroupId from = state.group;
  ReuseRequest* request = requests_.Find(stamp);
  if (request == nullptr) {
    request = BeginRequest(stamp);
    request->prompt_blocks = request->known_blocks = state.depth + 1;
    Precede(request, groups_.At(from));
  }
  if (!request->settled) Settle(request);
  ReuseGroup& group = groups_.At(from);
  if (group.request == request->serial) return;
  groups_.CountHit(from, request->serial, request->came_at);
  ReuseFeatures features = request->features;
  features.touches = state.touches = OneMore(state.touches);
  const uint8_t priority = group.priority;
  const bool orphaned = group.orphaned;
  Release(block);
  if (groups_.At(from).blocks == 0) groups_.Drop(from);
  const GroupId to = GroupFor(request, features, priority, orphaned);
  Hold(block, to);
  groups_.At(to).stamp = std::max(groups_.At(to).stamp, stamp);
}

ReuseRequest* ReusePolicy::RequestOf(const BlockTraits& newcomer, UseStamp stamp) {
  if (ReuseRequest* known = requests_.Find(stamp)) return known;
  if (const std::optional<GroupId> ghost = groups_.GhostOf(newcomer.key)) {
    if (ReuseRequest* lookup = requests_.BySerial(groups_.At(*ghost).request)) {
      requests_.TieReserve(lookup, stamp);
      return lookup;
    }
  }
  // Nobody asked for it before, or that is forgotten: it is classed as the block that it follows.
  ReuseRequest* request = requests_.Begin(stamp);
  request->came_at = model_.now();
  request->prompt_blocks = std::max(newcomer.prompt_blocks, newcomer.depth + 1);
  request->settled = true;
  if (newcomer.parent != kNoBlock) {
    request->features = groups_.At(Known(newcomer.parent).group).features;
    request->features.last = false;
  }
  request->features.fresh = FactorsOfFour(
      request->prompt_blocks - std::min(newcomer.prompt_hits, request->prompt_blocks), kReuseFresh);
  return request;
}

ReuseFeatures ReusePolicy::FeaturesOf(const ReuseRequest& request, const BlockTraits& newcomer,
                                      const MissedRun* run) const {
  ReuseFeatures features = request.features;
  features.touches = run != nullptr ? run->touches : uint8_t{1};
  features.last = run != nullptr ? run->last : newcomer.depth + 1 == request.prompt_blocks;
  return features;
}

bool ReusePolicy::Admits(const BlockTraits& newcomer, UseStamp stamp, const Victim* displaced) {
  if (displaced == nullptr) return true;
  const ReuseGroup& victim = groups_.At(Known(displaced->block).group);
  if (victim.orphaned || newcomer.priority > victim.priority) return true;
  if (newcomer.priority < victim.priority) return false;
  ReuseRequest* request = RequestOf(newcomer, stamp);
  MissedRun* run = request->RunAt(newcomer.depth);
  const bool waits = run != nullptr && groups_.IsStill(run->group, run->group_serial);
  const size_t age_bin = waits ? groups_.At(run->group).age_bin : 0;
  const ReuseModel::Cell cell = model_.CellOf(FeaturesOf(*request, newcomer, run));
  const bool admits = model_.WorthOf(cell, age_bin) >= model_.WorthOf(victim.cell, victim.age_bin);
  if (!admits && run != nullptr) run->declined_key = newcomer.key;
  return admits;
}

void ReusePolicy::Inserted(BlockHandle block, const BlockTraits& traits, UseStamp stamp) {
  if (block >= blocks_.size()) blocks_.resize(block + size_t{1});
  CAIRN_CHECK(blocks_[block].group == kNoGroup);
  ReuseRequest* request = RequestOf(traits, stamp);
  MissedRun* run = request->RunAt(traits.depth);
  const ReuseFeatures features = FeaturesOf(*request, traits, run);
  blocks_[block] = Block{.key = traits.key, .depth = traits.depth, .touches = features.touches};
  const bool waits = run != nullptr && groups_.IsStill(run->group, run->group_serial);
  if (waits) {
    ReuseGroup& group = groups_.At(run->group);
    if (group.ghost) groups_.NoLongerGhost(run->group);
    if (group.away > 0) --group.away;
    if (run->declined_key.has_value()) group.away_key = *run->declined_key;
  }
  const GroupId to = waits && traits.priority == groups_.At(run->group).priority &&
                             !groups_.At(run->group).orphaned
                         ? run->group
                         : GroupFor(request, features, traits.priority, false);
  Hold(block, to);
  groups_.At(to).stamp = std::max(groups_.At(to).stamp, stamp);
  if (waits && to != run->group && groups_.At(run->group).blocks == 0) groups_.Drop(run->group);
}

void ReusePolicy::MayGo(BlockHandle block) {
  Block& state = Known(block);
  if (state.may_go) return;
  state.may_go = true;
  LinkMayGo(block);
  groups_.Rank(state.group);
}

void ReusePolicy::MustStay(BlockHandle block) {
  Block& state = Known(block);
  if (!state.may_go) return;
  UnlinkMayGo(block);
  state.may_go = false;
  groups_.Rank(state.group);
}

void ReusePolicy::Orphaned(BlockHandle block, bool orphaned) {
  const ReuseGroup& group = groups_.At(Known(block).group);
  if (group.orphaned != orphaned) MoveBeside(block, group.priority, orphaned);
}

void ReusePolicy::PriorityChanged(BlockHandle block, uint8_t priority) {
  const ReuseGroup& group = groups_.At(Known(block).group);
  if (group.priority != priority) MoveBeside(block, priority, group.orphaned);
}

void ReusePolicy::MoveBeside(BlockHandle block, uint8_t priority, bool orphaned) {
  const GroupId from = Known(block).group;
  const uint64_t from_serial = groups_.At(from).serial;
  bool made = beside_of_serial_ == from_serial && groups_.IsStill(beside_, beside_serial_) &&
              groups_.At(beside_).priority == priority && groups_.At(beside_).orphaned == orphaned;
  if (!made) {
    beside_ = groups_.MakeBeside(from);
    ReuseGroup& group = groups_.At(beside_);
    group.priority = priority;
    group.orphaned = orphaned;
    beside_serial_ = group.serial;
    beside_of_serial_ = from_serial;
  }
  Release(block);
  Hold(block, beside_);
  if (groups_.At(from).blocks == 0) groups_.Drop(from);
}

void ReusePolicy::Removed(BlockHandle block) {
  MustStay(block);
  const GroupId from = blocks_[block].group;
  Release(block);
  ReuseGroup& group = groups_.At(from);
  ++group.away;
  group.away_key = blocks_[block].key;
  if (group.blocks == 0) groups_.BecomeGhost(from);
  blocks_[block] = Block{};
}

std::optional<EvictionPolicy::Victim> ReusePolicy::NextVictim() {
  const std::optional<GroupId> first = groups_.First();
  if (!first.has_value()) return std::nullopt;
  const ReuseGroup& group = groups_.At(*first);
  CAIRN_CHECK(group.may_go != kNoBlock);
  const std::optional<UseStamp> oldest = groups_.OldestStamp();
  CAIRN_CHECK(oldest.has_value());
  return Victim{.block = group.may_go, .orphaned = group.orphaned, .stamp = *oldest};
}

uint64_t ReusePolicy::MemoryBytes() const {
  return blocks_.capacity() * sizeof(Block) + groups_.MemoryBytes() + requests_.MemoryBytes() +
         model_.MemoryBytes();
}

}  // namespace cairn::node
