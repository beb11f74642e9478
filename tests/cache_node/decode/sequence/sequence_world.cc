#include "tests/cache_node/decode/sequence/sequence_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

constexpr uint32_t kHeads = 4;
constexpr uint32_t kDim = 8;

Group KvGroup(uint32_t layers) {
  Group group;
  group.kind = GroupKind::kFull;
  group.required = 1;
  group.layers = layers;
  group.kv_heads = kHeads;
  group.key_dim = kDim;
  group.value_dim = kDim;
  group.dtype = Dtype::kFloat32;
  return group;
}

// What row element `dim` of a head is, as a float that is exact.
float Element(uint32_t token, uint64_t position, const SegmentId& segment, uint32_t head,
              bool value, uint32_t dim) {
  uint64_t mixed = token * 0x9e3779b97f4a7c15u + position * 0xbf58476d1ce4e5b9u +
                   segment.group * 7919u + segment.slice * 104729u + segment.layer * 1299709u +
                   head * 15485863u + (value ? 32452843u : 0u) + dim * 49979687u;
  mixed ^= mixed >> 29;
  mixed *= 0x94d049bb133111ebu;
  return static_cast<float>(static_cast<int32_t>(mixed >> 40));
}

}  // namespace

Namespace SequenceWorld::Shape(bool draft, const std::string& model) {
  Namespace fields = testing::SampleNamespace();
  fields.model = model;
  fields.layout = {.version = 1, .block_tokens = kBlockTokens, .slices = 2, .groups = {KvGroup(2)}};
  if (draft) {
    fields.layout.groups.push_back(KvGroup(1));
    fields.layout.groups[1].kind = GroupKind::kDraft;
    fields.layout.groups[1].required = 0;
  }
  return fields;
}

TestStoreOptions SequenceWorld::StoreOptions() {
  TestStoreOptions options;
  options.pool_bytes = 16 * 16384;  // 5 blocks each.
  return options;
}

SequenceTable::Options SequenceWorld::TableOptions() {
  SequenceTable::Options options;
  options.pages.bytes_max = kDecodeBytes;
  options.pins.bytes_max = 16 * 16384;
  return options;
}

SequenceWorld::SequenceWorld(SequenceTable::Options options, const Namespace& fields_in,
                             TestStoreOptions store_options)
    : store(std::move(store_options)), fields(fields_in) {
  fingerprint = store.Register(fields);
  map = store.store->FindPayloadMap(fingerprint);
  table = std::make_unique<SequenceTable>(options, store.store.get(), &store.counters, &store.time,
                                          &store.random, &hasher);
}

SequenceWorld::~SequenceWorld() = default;

SequencePrompt SequenceWorld::PromptOf(const TestPrompt& prompt,
                                       const std::vector<uint32_t>& more) const {
  SequencePrompt made;
  made.rules = *KeyRulesOf(fields);
  CAIRN_CHECK(!prompt.region_parent.has_value());
  made.regions.push_back({.scope = prompt.scope, .first_block = 0});
  made.keys = prompt.keys;
  made.tokens = prompt.tokens;
  made.tokens.insert(made.tokens.end(), more.begin(), more.end());
  return made;
}

SequenceTable::Opening SequenceWorld::OpeningOf(const TestPrompt& prompt, const Wish& wish) {
  SequenceTable::Opening opening;
  opening.tenant = wish.tenant;
  opening.writer = 77;
  opening.fingerprint = fingerprint;
  opening.map = map;
  opening.prompt = PromptOf(prompt, wish.more_tokens);
  opening.first_block = wish.first_block;
  opening.reserve_tokens = wish.reserve_tokens;
  opening.idle = wish.idle;
  const LookupAnswer leased = store.Lease(prompt);
  if (!leased.lease.has_value()) return opening;
  auto pins = store.store->LeasePins(prompt.tenant(), fingerprint, *leased.lease, 0,
                                     wish.first_block, wish.blocks_max);
  CAIRN_CHECK_OK(pins.status());
  opening.pins = *std::move(pins);
  CAIRN_CHECK_OK(store.store->EndLease(prompt.tenant(), *leased.lease, 0, {0}).status());
  return opening;
}

absl::StatusOr<SequenceTable::Opened> SequenceWorld::TryOpen(const TestPrompt& prompt,
                                                             const Wish& wish) {
  return table->Open(OpeningOf(prompt, wish));
}

SequenceId SequenceWorld::Open(const TestPrompt& prompt, const Wish& wish) {
  const auto opened = TryOpen(prompt, wish);
  CAIRN_CHECK_OK(opened.status());
  return opened->id;
}

SequenceWorld::Rows SequenceWorld::MakeRows(const Where& where, uint64_t position,
                                            std::vector<uint32_t> tokens) const {
  Rows made;
  made.tokens = std::move(tokens);
  const uint32_t heads = kHeads / 2;  // Of a slice.
  const auto fill = [&](bool value, std::string* bytes) {
    for (size_t row = 0; row < made.tokens.size(); ++row) {
      for (uint32_t slice = where.first_slice; slice < where.first_slice + where.slices; ++slice) {
        for (uint32_t i = 0; i < heads * kDim; ++i) {
          const float element =
              Element(made.tokens[row], position + row, {where.group, slice, where.layer}, i / kDim,
                      value, i % kDim);
          bytes->append(reinterpret_cast<const char*>(&element), sizeof(element));
        }
      }
    }
  };
  fill(false, &made.keys);
  fill(true, &made.values);
  made.rows = {.group = where.group,
               .first_slice = where.first_slice,
               .slices = where.slices,
               .layer = where.layer,
               .position = position,
               .rows = static_cast<uint32_t>(made.tokens.size()),
               .keys = made.keys,
               .values = made.values,
               .tokens = made.tokens};
  return made;
}

absl::Status SequenceWorld::TryAppend(const SequenceId& id, const Where& where, uint64_t position,
                                      const std::vector<uint32_t>& tokens,
                                      const std::string& tenant) {
  const auto sequence = table->Find(tenant, id);
  if (!sequence.ok()) return sequence.status();
  const Rows made = MakeRows(where, position, tokens);
  AppendRows rows = made.rows;
  rows.keys = made.keys;
  rows.values = made.values;
  rows.tokens = made.tokens;
  return table->Append(*sequence, rows);
}

absl::Status SequenceWorld::Append(const SequenceId& id, uint64_t position,
                                   const std::vector<uint32_t>& tokens, const std::string& tenant) {
  for (uint32_t layer = 0; layer < 2; ++layer) {
    absl::Status status = TryAppend(id, {.layer = layer}, position, tokens, tenant);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

::testing::AssertionResult SequenceWorld::RowHolds(const std::byte* slot, const SegmentId& segment,
                                                   uint64_t position, uint32_t token) {
  const std::byte* bytes = slot + map->SegmentOffset(*map->FindSegment(segment));
  const SegmentTiles& tiles = map->TilesOfGroup(segment.group);
  for (uint32_t i = 0; i < kHeads / 2 * kDim; ++i) {
    const uint64_t row = (i / kDim) * kBlockTokens + position % kBlockTokens;
    for (const bool value : {false, true}) {
      const uint64_t tile = value ? tiles.value.offset : tiles.key.offset;
      float stored = 0;
      std::memcpy(&stored, bytes + tile + (row * kDim + i % kDim) * sizeof(float), sizeof(stored));
      if (stored == Element(token, position, segment, i / kDim, value, i % kDim)) continue;
      return ::testing::AssertionFailure()
             << "position " << position << " of layer " << segment.layer << ", slice "
             << segment.slice << ", group " << segment.group << " holds another row";
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult SequenceWorld::BlockHolds(const std::byte* slot, uint64_t position,
                                                     const std::vector<uint32_t>& tokens) {
  for (uint32_t slice = 0; slice < 2; ++slice) {
    for (uint32_t layer = 0; layer < 2; ++layer) {
      for (size_t i = 0; i < tokens.size(); ++i) {
        const auto held = RowHolds(slot, {0, slice, layer}, position + i, tokens[i]);
        if (!held) return held;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult SequenceWorld::SegmentHolds(const Sequence& sequence,
                                                       const SegmentId& segment, uint64_t position,
                                                       const std::vector<uint32_t>& tokens) {
  const SlotRun run = sequence.Stored(segment.group, segment.slice, segment.layer);
  for (uint64_t at = position; at < run.first_position + run.tokens; ++at) {
    if (at - position >= tokens.size()) {
      return ::testing::AssertionFailure() << "a row at " << at << " that nobody sent";
    }
    const uint64_t block = (at - run.first_position) / kBlockTokens;
    if (block >= run.slots.size()) return ::testing::AssertionFailure() << "no slot at " << at;
    if (run.slots[block] == nullptr) continue;  // Given back.
    const auto held = RowHolds(run.slots[block], segment, at, tokens[at - position]);
    if (!held) return held;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult SequenceWorld::Holds(const SequenceId& id, uint64_t position,
                                                const std::vector<uint32_t>& tokens,
                                                const std::string& tenant) {
  const auto sequence = table->Find(tenant, id);
  if (!sequence.ok()) return ::testing::AssertionFailure() << sequence.status();
  for (uint32_t layer = 0; layer < 2; ++layer) {
    for (uint32_t slice = 0; slice < 2; ++slice) {
      const uint64_t length = (*sequence)->LengthOf(*map->FindSegment({0, slice, layer}));
      if (length != position + tokens.size()) {
        return ::testing::AssertionFailure() << "layer " << layer << " holds " << length;
      }
      const auto held = SegmentHolds(**sequence, {0, slice, layer}, position, tokens);
      if (!held) return held;
    }
  }
  return ::testing::AssertionSuccess();
}

uint64_t SequenceWorld::Length(const SequenceId& id, const std::string& tenant) {
  const auto sequence = table->Find(tenant, id);
  CAIRN_CHECK_OK(sequence.status());
  return (*sequence)->length_tokens();
}

absl::Status SequenceWorld::Audit() const {
  if (absl::Status status = table->Audit(); !status.ok()) return status;
  return store.store->Audit();
}

absl::Status SequenceWorld::Quiet() {
  const DecodeNumbers numbers = table->Numbers();
  if (numbers.running != 0) return absl::InternalError("sequences are left");
  if (numbers.bytes_used != 0 || numbers.bytes_reserved != 0) {
    return absl::InternalError("pages are left");
  }
  if (numbers.pinned_bytes != 0) return absl::InternalError("pins are left");
  if (numbers.tokens_reserved != 0) return absl::InternalError("reserved tokens are left");
  if (numbers.opened + numbers.forked != numbers.closed + numbers.reclaimed()) {
    return absl::InternalError("sequences are miscounted");
  }
  if (absl::Status status = Audit(); !status.ok()) return status;
  store.AdvancePastEverything();
  return store.Quiet();
}

}  // namespace cairn::node
