#include "tests/cache_node/decode/sequence/random_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {
namespace {

SequenceTable::Options SmallTable() {
  SequenceTable::Options options = SequenceWorld::TableOptions();
  options.pages.bytes_max = 192 << 10;  // 16 slabs of 4 pages: often full.
  options.pins.bytes_max = 24 * 3072;
  options.seals_max = 3;
  options.idle_default = absl::Seconds(60);
  return options;
}

}  // namespace

RandomSequences::RandomSequences(uint64_t seed) : w_(SmallTable()), random_(seed) {}

TestPrompt RandomSequences::AnyPrompt() {
  const uint32_t seed = static_cast<uint32_t>(Random(5));
  const std::string tenants[] = {"t", "u", "public"};
  return w_.store.Prompt(tenants[seed % 3], seed, 1 + seed % 4);
}

RandomSequences::Models::iterator RandomSequences::Any() {
  if (models_.empty()) return models_.end();
  auto it = models_.begin();
  std::advance(it, static_cast<ptrdiff_t>(Random(models_.size())));
  return it;
}

uint64_t RandomSequences::LengthOf(const Model& model) {
  uint64_t length = UINT64_MAX;
  for (const auto& slice : model.lengths.main) {
    for (const uint64_t held : slice) length = std::min(length, held);
  }
  return length;
}

uint64_t RandomSequences::EndOf(const Model& model) { return model.covered + model.tokens.size(); }

bool RandomSequences::StillThere(Models::iterator it) {
  const auto found = w_.table->Find(it->second.tenant, it->first);
  if (found.ok()) {
    EXPECT_FALSE(it->second.doomed) << "it outlived what it rests on";
    return true;
  }
  EXPECT_TRUE(Is(found.status(), absl::StatusCode::kAborted)) << found.status();
  EXPECT_TRUE(it->second.doomed) << "it ended by itself: " << found.status();
  models_.erase(it);
  ++happened["ended by removals"];
  return false;
}

void RandomSequences::Open() {
  const TestPrompt prompt = AnyPrompt();
  if (Chance(70)) w_.store.Put(prompt);
  SequenceWorld::Wish wish;
  wish.tenant = prompt.tenant() == kPublicTenant ? (Chance(50) ? "t" : "u") : prompt.tenant();
  wish.first_block = static_cast<uint32_t>(Random(prompt.keys.size() + 1));
  wish.blocks_max = static_cast<uint32_t>(Random(5));
  wish.reserve_tokens = Random(40);
  const DecodeNumbers before = w_.table->Numbers();
  const auto opened = w_.TryOpen(prompt, wish);
  if (!opened.ok()) {
    EXPECT_TRUE(Is(opened.status(), absl::StatusCode::kResourceExhausted)) << opened.status();
    const DecodeNumbers after = w_.table->Numbers();
    EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
    EXPECT_EQ(after.pinned_bytes, before.pinned_bytes);
    EXPECT_LE(after.book_bytes, before.book_bytes);  // Closed ones may have given way.
    EXPECT_EQ(after.refused, before.refused + 1);
    ++happened["openings refused"];
    return;
  }
  Model model;
  model.tenant = wish.tenant;
  model.prompt = prompt;
  model.first = opened->first_token;
  model.covered = opened->covered_tokens;
  EXPECT_EQ(model.first, uint64_t{wish.first_block} * kBlockTokens);
  model.capacity = model.covered + wish.reserve_tokens;
  for (auto& slice : model.lengths.main) slice.fill(model.covered);
  model.lengths.draft.fill(model.covered);
  // Blocks that were sealed have no draft rows: nothing is appended to it behind these.
  const auto sequence = w_.table->Find(wish.tenant, opened->id);
  CAIRN_CHECK_OK(sequence.status());
  for (uint32_t slice = 0; slice < 2; ++slice) {
    model.lengths.draft[slice] = (*sequence)->LengthOf(*w_.map->FindSegment({1, slice, 0}));
  }
  EXPECT_TRUE(models_.emplace(opened->id, std::move(model)).second);
  ++happened["opened"];
}

// Rows that the rules allow.
void RandomSequences::AppendTo(Models::iterator it, const SequenceWorld::Where& where,
                               uint64_t rows) {
  Model& model = it->second;
  const auto length_of = [&](uint32_t slice) -> uint64_t& {
    return where.group == 1 ? model.lengths.draft[slice] : model.lengths.main[slice][where.layer];
  };
  uint64_t shortest = UINT64_MAX;
  for (uint32_t slice = where.first_slice; slice < where.first_slice + where.slices; ++slice) {
    shortest = std::min(shortest, length_of(slice));
  }
  const uint64_t again = std::min({Random(3), shortest - model.first, shortest - model.released});
  const uint64_t position =
      Chance(20) && shortest > model.covered ? std::max(model.covered, shortest - again) : shortest;
  const bool draft = where.group == 1;
  if (draft && (shortest < model.covered || shortest < model.released)) return;
  if (position + rows > model.capacity || position < model.covered) return;
  std::vector<uint32_t> tokens;
  for (uint64_t at = position; at < position + rows; ++at) {
    if (at < model.prompt.tokens.size()) {
      tokens.push_back(model.prompt.tokens[at]);
    } else if (at < EndOf(model)) {
      tokens.push_back(model.tokens[at - model.covered]);
    } else {
      tokens.push_back(static_cast<uint32_t>(Random(3)));  // So that forks often agree.
    }
  }
  const absl::Status status = w_.TryAppend(it->first, where, position, tokens, model.tenant);
  if (!status.ok()) {
    // A group that lags may need a copy of a page that is shared, which nobody reserved.
    EXPECT_TRUE(draft && Is(status, absl::StatusCode::kResourceExhausted)) << status;
    ++happened["lagging rows refused"];
    return;
  }
  for (uint32_t slice = where.first_slice; slice < where.first_slice + where.slices; ++slice) {
    length_of(slice) = std::max(length_of(slice), position + rows);
  }
  for (uint64_t at = EndOf(model); at < position + rows; ++at) {
    model.tokens.push_back(tokens[at - position]);
  }
  happened["rows appended"] += rows;
}

void RandomSequences::AppendSome() {
  const auto it = Any();
  if (it == models_.end() || !StillThere(it)) return;
  const uint64_t rows = 1 + Random(6);
  if (Chance(70)) {  // A step of the whole model.
    const uint64_t end = std::min(it->second.capacity, LengthOf(it->second) + rows);
    for (uint32_t layer = 0; layer < 2; ++layer) {
      for (uint32_t slice = 0; slice < 2; ++slice) {
        const uint64_t held = it->second.lengths.main[slice][layer];
        if (held >= end) continue;
        AppendTo(it, {.first_slice = slice, .slices = 1, .layer = layer}, end - held);
      }
    }
    return;
  }
  SequenceWorld::Where where;
  where.group = Chance(30) ? 1 : 0;
  where.layer = where.group == 1 ? 0 : static_cast<uint32_t>(Random(2));
  where.first_slice = static_cast<uint32_t>(Random(2));
  where.slices = where.first_slice == 0 ? 1 + static_cast<uint32_t>(Random(2)) : 1;
  AppendTo(it, where, rows);
}

void RandomSequences::AppendBad() {
  const auto it = Any();
  if (it == models_.end() || !StillThere(it)) return;
  const Model& model = it->second;
  const uint64_t length = model.lengths.main[0][0];
  SequenceWorld::Where where{.slices = 1};
  const uint64_t kind = Random(4);
  absl::Status status;
  if (kind == 0) {
    status = w_.TryAppend(it->first, where, length + 1 + Random(5), {1}, model.tenant);
    EXPECT_TRUE(Is(status, absl::StatusCode::kFailedPrecondition)) << status;
  } else if (kind == 1) {
    const std::vector<uint32_t> many(model.capacity - length + 1 + Random(3), 1);
    status = w_.TryAppend(it->first, where, length, many, model.tenant);
    EXPECT_TRUE(Is(status, absl::StatusCode::kResourceExhausted)) << status;
  } else if (kind == 2 && length > model.covered && length > model.released) {
    const uint32_t token = model.tokens[length - 1 - model.covered];
    status = w_.TryAppend(it->first, where, length - 1, {token + 1}, model.tenant);
    EXPECT_TRUE(Is(status, absl::StatusCode::kInvalidArgument)) << status;
  } else {
    where.layer = 2 + static_cast<uint32_t>(Random(3));
    status = w_.TryAppend(it->first, where, length, {1}, model.tenant);
    EXPECT_TRUE(Is(status, absl::StatusCode::kInvalidArgument)) << status;
  }
  EXPECT_TRUE(
      Is(w_.TryAppend(it->first, where, length, {1}, "stranger"), absl::StatusCode::kAborted));
  ++happened["bad rows"];
}

void RandomSequences::Fork() {
  const auto it = Any();
  if (it == models_.end() || models_.size() >= kSequencesMax || !StillThere(it)) return;
  const Model parent = it->second;
  const uint32_t count = 1 + static_cast<uint32_t>(Random(4));
  const uint64_t reserve = Random(20);
  const DecodeNumbers before = w_.table->Numbers();
  const auto forked = w_.table->Fork(parent.tenant, it->first, count, reserve);
  if (!forked.ok()) {
    EXPECT_TRUE(Is(forked.status(), absl::StatusCode::kResourceExhausted)) << forked.status();
    EXPECT_EQ(w_.table->Numbers().bytes_reserved, before.bytes_reserved);
    EXPECT_EQ(w_.table->Numbers().running, before.running);
    ++happened["forks refused"];
    return;
  }
  const uint64_t length = LengthOf(parent);
  EXPECT_EQ(forked->length_tokens, length);
  EXPECT_LE(w_.table->Numbers().bytes_used, before.bytes_used) << "a fork copied something";
  Model fork = parent;
  fork.capacity = length + reserve;
  fork.tokens.resize(length - fork.covered);
  for (auto& slice : fork.lengths.main) slice.fill(length);
  for (uint64_t& held : fork.lengths.draft) held = std::min(held, length);
  for (const SequenceId& id : forked->ids) EXPECT_TRUE(models_.emplace(id, fork).second);
  happened["forks"] += forked->ids.size();
}

void RandomSequences::Truncate() {
  const auto it = Any();
  if (it == models_.end() || !StillThere(it)) return;
  Model& model = it->second;
  const uint64_t length = model.first + Random(EndOf(model) - model.first + 3);
  const auto left = w_.table->Truncate(model.tenant, it->first, length);
  if (length < model.covered || length < model.released) {
    EXPECT_TRUE(Is(left.status(), absl::StatusCode::kInvalidArgument)) << left.status();
    return;
  }
  ASSERT_TRUE(left.ok()) << left.status();
  if (length < EndOf(model)) model.tokens.resize(length - model.covered);
  for (auto& slice : model.lengths.main) {
    for (uint64_t& held : slice) held = std::min(held, length);
  }
  for (uint64_t& held : model.lengths.draft) held = std::min(held, length);
  EXPECT_EQ(*left, LengthOf(model));
  const uint64_t capacity = (*w_.table->Find(model.tenant, it->first))->capacity_tokens();
  EXPECT_LE(capacity, model.capacity);
  EXPECT_GE(capacity, EndOf(model));
  if (capacity < model.capacity) ++happened["capacities lowered"];
  model.capacity = capacity;
  ++happened["truncations"];
}

void RandomSequences::Release() {
  const auto it = Any();
  if (it == models_.end() || !StillThere(it)) return;
  Model& model = it->second;
  const uint64_t before = Random(LengthOf(model) + 3);
  const auto given = w_.table->ReleaseWindow(model.tenant, it->first, before, 0);
  if (before > LengthOf(model)) {
    EXPECT_TRUE(Is(given.status(), absl::StatusCode::kInvalidArgument)) << given.status();
    return;
  }
  ASSERT_TRUE(given.ok()) << given.status();
  const uint64_t released =
      std::max(model.released, std::max(model.first, before / kBlockTokens * kBlockTokens));
  const uint64_t from = std::max(model.released, model.first);
  EXPECT_EQ(*given, (std::max(released, from) - from) / kBlockTokens);
  if (*given > 0) {
    model.released = released;
    ++happened["windows"];
  }
}

void RandomSequences::Close() {
  const auto it = Any();
  if (it == models_.end()) return;
  const bool doomed = it->second.doomed;
  const size_t closed = w_.table->Close(it->second.tenant, {it->first, it->first});
  EXPECT_TRUE(closed == 1 || (doomed && closed == 0));
  EXPECT_TRUE(
      Is(w_.table->Find(it->second.tenant, it->first).status(), absl::StatusCode::kAborted));
  models_.erase(it);
  ++happened["closed"];
}

void RandomSequences::Check(Models::iterator it) {
  const Model& model = it->second;
  const auto found = w_.table->Find(model.tenant, it->first);
  ASSERT_TRUE(found.ok());
  const Sequence& sequence = **found;
  EXPECT_EQ(sequence.length_tokens(), LengthOf(model));
  EXPECT_EQ(sequence.end_tokens(), EndOf(model));
  EXPECT_EQ(sequence.capacity_tokens(), model.capacity);
  EXPECT_EQ(sequence.released().second, model.released);
  for (uint32_t slice = 0; slice < 2; ++slice) {
    for (uint32_t layer = 0; layer < 3; ++layer) {
      const SegmentId segment = layer < 2 ? SegmentId{0, slice, layer} : SegmentId{1, slice, 0};
      const uint64_t length =
          layer < 2 ? model.lengths.main[slice][layer] : model.lengths.draft[slice];
      ASSERT_EQ(sequence.LengthOf(*w_.map->FindSegment(segment)), length);
      ASSERT_TRUE(w_.SegmentHolds(sequence, segment, model.covered, model.tokens));
    }
  }
  ++happened["checked"];
}

void RandomSequences::CheckAll() {
  for (auto it = models_.begin(); it != models_.end();) {
    const auto next = std::next(it);
    if (StillThere(it)) Check(it);
    it = next;
  }
  EXPECT_EQ(w_.table->Numbers().running, models_.size());
  ASSERT_TRUE(w_.Audit().ok()) << w_.Audit();
}

void RandomSequences::Step() {
  const uint64_t kind = Random(1000);
  if (kind < 120) {
    if (models_.size() < kSequencesMax) Open();
  } else if (kind < 620) {
    AppendSome();
  } else if (kind < 660) {
    AppendBad();
  } else if (kind < 720) {
    Fork();
  } else if (kind < 800) {
    Truncate();
  } else if (kind < 830) {
    Release();
  } else if (kind < 880) {
    Close();
  } else if (kind < 970) {
    Seal();
  } else if (kind < 975) {
    Evict();
  } else if (kind < 980) {
    Crowd();
  } else if (kind < 988) {
    RemoveBlocks();
  } else if (kind < 996) {
    LetTimePass();
  } else if (kind < 997) {
    Retire();
  } else {
    CheckAll();
  }
  if (!Chance(10)) return;
  const auto it = Any();
  if (it != models_.end() && StillThere(it)) Check(it);
}

void RandomSequences::End() {
  crowd_.clear();
  while (!sealing_.empty()) {
    w_.table->FinishSeal(sealing_.back().serial, SealOutcome::kRefused);
    sealing_.pop_back();
  }
  CheckAll();
  for (size_t left = models_.size() / 2; left > 0; --left) Close();
  w_.store.AdvancePastEverything();
  w_.table->Tick();
  w_.SealAll();  // What was full at a close.
  w_.store.AdvancePastEverything();
  w_.table->Tick();
  EXPECT_EQ(w_.table->Numbers().closing, 0u);
  const absl::Status quiet = w_.Quiet();
  EXPECT_TRUE(quiet.ok()) << quiet;
}

}  // namespace cairn::node
