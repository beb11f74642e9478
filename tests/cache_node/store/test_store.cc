#include "tests/cache_node/store/test_store.h"

#include <algorithm>

#include "cache_node/store/reserve_plan.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "tests/testing/identity_samples.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);

std::vector<uint32_t> TokensFrom(uint32_t seed, size_t blocks) {
  std::vector<uint32_t> tokens(blocks * TestStore::kBlockTokens);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = seed * 100'003 + static_cast<uint32_t>(i);
  return tokens;
}

Group OpaqueGroup(uint64_t segment_bytes) {
  Group group;
  group.kind = GroupKind::kFull;
  group.layers = 1;
  group.opaque_bytes = static_cast<uint32_t>(segment_bytes / TestStore::kBlockTokens);
  return group;
}

}  // namespace

TestStore::TestStore(TestStoreOptions options)
    : time(&clock, 2 * kTick),
      random(7),
      hasher_(options.hasher != nullptr ? options.hasher : &sha_) {
  auto memory = HostMemory::Create(options.pool_bytes, options.device);
  CAIRN_CHECK_OK(memory.status());
  BlockStore::Signals signals;
  signals.settled = [this] {
    ++settled_signals;
    if (const std::function<void()> hook = on_settled) hook();
  };
  signals.feed = [this](std::vector<WatcherId>) { ++feed_signals; };
  signals.spills = [this] { ++spill_signals; };
  signals.loads = [this] { ++load_signals; };
  signals.uploads = [this] { ++upload_signals; };
  signals.device_loads = [this] { ++device_load_signals; };
  if (options.policies == nullptr) options.policies = std::make_unique<LruPolicyFactory>();
  store =
      std::make_unique<BlockStore>(options.store, &time, &random, &counters, *std::move(memory),
                                   std::move(options.policies), std::move(signals), options.ledger,
                                   options.device == nullptr ? nullptr : &options.device->memory());
}

Namespace TestStore::Shape(uint64_t block_bytes, const std::string& model) {
  Namespace fields = testing::SampleNamespace();
  fields.model = model;
  fields.layout = {.version = 1,
                   .block_tokens = kBlockTokens,
                   .slices = 1,
                   .groups = {OpaqueGroup(block_bytes)}};
  return fields;
}

Namespace TestStore::ManySegments(uint32_t layers, uint32_t slices, bool optional_group) {
  Namespace fields = Shape(64);
  fields.layout.slices = slices;
  fields.layout.groups[0].layers = layers;
  fields.layout.groups[0].kv_heads = slices;
  if (optional_group) {
    Group draft = OpaqueGroup(64);
    draft.kind = GroupKind::kDraft;
    draft.required = 0;
    draft.kv_heads = slices;
    fields.layout.groups.push_back(draft);
  }
  return fields;
}

Fingerprint TestStore::Register(const Namespace& fields, const std::string& tenant,
                                const std::string& name) {
  const auto registered =
      store->RegisterNamespace(tenant, name.empty() ? fields.model : name, fields);
  CAIRN_CHECK_OK(registered.status());
  fingerprint_ = registered->fingerprint;
  maps_[fingerprint_] = store->FindPayloadMap(fingerprint_);
  return fingerprint_;
}

void TestStore::Know(const Fingerprint& fingerprint) {
  fingerprint_ = fingerprint;
  maps_[fingerprint] = store->FindPayloadMap(fingerprint);
  CAIRN_CHECK(maps_[fingerprint] != nullptr);
}

KeyRules TestStore::Rules() const {
  return {
      .fingerprint = fingerprint_, .key_scheme = KeyScheme::kCairn, .block_tokens = kBlockTokens};
}

TestPrompt TestStore::Prompt(const std::string& tenant, uint32_t seed, size_t blocks,
                             const std::string& salt) {
  TestPrompt prompt;
  prompt.scope = {.tenant = tenant, .adapter = "", .salt = salt};
  prompt.tokens = TokensFrom(seed, blocks);
  BlockKey before = EnterScope(fingerprint_.root(), prompt.scope);
  for (size_t i = 0; i < blocks; ++i) {
    before = hasher_->Block(
        before, absl::MakeConstSpan(prompt.tokens).subspan(i * kBlockTokens, kBlockTokens), "");
    prompt.keys.push_back(before);
  }
  return prompt;
}

TestPrompt TestStore::Branch(const TestPrompt& prompt, size_t keep, uint32_t seed, size_t blocks) {
  CAIRN_CHECK(keep >= 1 && keep <= prompt.keys.size());
  TestPrompt branch = prompt;
  branch.keys.resize(keep);
  branch.tokens.resize(keep * kBlockTokens);
  const std::vector<uint32_t> more = TokensFrom(seed, blocks);
  branch.tokens.insert(branch.tokens.end(), more.begin(), more.end());
  for (size_t i = 0; i < blocks; ++i) {
    branch.keys.push_back(hasher_->Block(
        branch.keys.back(), absl::MakeConstSpan(more).subspan(i * kBlockTokens, kBlockTokens), ""));
  }
  return branch;
}

TestPrompt TestStore::After(const TestPrompt& first, const std::string& tenant, uint32_t seed,
                            size_t blocks) {
  TestPrompt prompt;
  prompt.scope = {.tenant = tenant, .adapter = "", .salt = ""};
  prompt.region_parent = first.keys.back();
  prompt.tokens = TokensFrom(seed, blocks);
  BlockKey before = EnterScope(first.keys.back(), prompt.scope);
  for (size_t i = 0; i < blocks; ++i) {
    before = hasher_->Block(
        before, absl::MakeConstSpan(prompt.tokens).subspan(i * kBlockTokens, kBlockTokens), "");
    prompt.keys.push_back(before);
  }
  return prompt;
}

ReserveQuery TestStore::Plan(const TestPrompt& prompt, size_t from, size_t count) {
  count = std::min(count, prompt.keys.size() - from);
  ReserveFields fields;
  fields.scope = prompt.scope;
  fields.region_parent = prompt.region_parent;
  if (from > 0) fields.parent = prompt.keys[from - 1];
  fields.keys = absl::MakeConstSpan(prompt.keys).subspan(from, count);
  fields.tokens =
      absl::MakeConstSpan(prompt.tokens).subspan(from * kBlockTokens, count * kBlockTokens);
  auto query = PlanReserve(*hasher_, Rules(), fields);
  CAIRN_CHECK_OK(query.status());
  query->retention = retention;
  query->stays_until_unix_ms = stays_until_unix_ms;
  query->provenance = provenance;
  return *std::move(query);
}

absl::StatusOr<ReserveAnswer> TestStore::Reserve(const TestPrompt& prompt, size_t from,
                                                 size_t count) {
  return store->Reserve(prompt.tenant(), fingerprint_, Plan(prompt, from, count));
}

std::vector<uint8_t> TestStore::Bytes(const BlockKey& key, const SegmentId& first,
                                      uint32_t layers) {
  const PayloadMap* map = &Map();
  const std::optional<size_t> segment = map->FindSegment(first);
  CAIRN_CHECK(segment.has_value());
  const uint64_t segment_bytes = map->SegmentBytesAt(*segment);
  std::vector<uint8_t> bytes(segment_bytes * layers);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    uint64_t state = SegmentDigestSeed(key, {first.group, first.slice, first.layer + layer}) | 1;
    for (uint64_t i = 0; i < segment_bytes; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[layer * segment_bytes + i] = static_cast<uint8_t>(state >> 56);
    }
  }
  return bytes;
}

WritePiece TestStore::Piece(const BlockKey& key, uint32_t block, const SegmentId& first,
                            uint32_t layers) {
  const std::vector<uint8_t> bytes = Bytes(key, first, layers);
  const size_t segment_bytes = bytes.size() / layers;
  WritePiece piece;
  piece.run.block = block;
  piece.run.group = first.group;
  piece.run.slice = first.slice;
  piece.run.layer = first.layer;
  for (uint32_t i = 0; i < layers; ++i) {
    piece.run.digests.push_back(
        SegmentDigest(key, {first.group, first.slice, first.layer + i},
                      absl::MakeConstSpan(bytes).subspan(i * segment_bytes, segment_bytes)));
  }
  piece.length = static_cast<uint32_t>(bytes.size());
  return piece;
}

absl::Status TestStore::Write(const std::string& tenant, const TokenId& token, const BlockKey& key,
                              uint32_t block, const SegmentId& first, uint32_t layers,
                              uint64_t writer) {
  auto claim = store->BeginWrite(tenant, token, writer, Piece(key, block, first, layers));
  if (!claim.ok()) return claim.status();
  if (*claim) {
    const std::vector<uint8_t> bytes = Bytes(key, first, layers);
    CAIRN_CHECK(bytes.size() == claim->destination().size());
    std::copy(bytes.begin(), bytes.end(), claim->destination().begin());
  }
  return store->FinishWrite(*std::move(claim));
}

absl::Status TestStore::WriteBlock(const std::string& tenant, const TokenId& token,
                                   const BlockKey& key, uint32_t block) {
  for (const PayloadMap::Part& part : Map().parts()) {
    absl::Status status =
        Write(tenant, token, key, block, {part.group, part.slice, 0}, part.layers);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<SegmentRun> TestStore::RunsOf(const BlockKey& key, uint32_t block) {
  std::vector<SegmentRun> runs;
  for (const PayloadMap::Part& part : Map().parts()) {
    runs.push_back(Piece(key, block, {part.group, part.slice, 0}, part.layers).run);
  }
  return runs;
}

absl::StatusOr<CommitAnswer> TestStore::CommitBlock(const std::string& tenant, const TokenId& token,
                                                    const BlockKey& key, uint32_t block) {
  return store->Commit(tenant, token, RunsOf(key, block));
}

size_t TestStore::Put(const TestPrompt& prompt) {
  const auto reserved = Reserve(prompt);
  CAIRN_CHECK_OK(reserved.status());
  if (!reserved->token.has_value()) return 0;
  size_t written = 0;
  for (uint32_t i = 0; i < prompt.keys.size(); ++i) {
    if (reserved->outcomes[i] != ReserveOutcome::kReserved) continue;
    CAIRN_CHECK_OK(WriteBlock(prompt.tenant(), *reserved->token, prompt.keys[i], i));
    const auto committed = CommitBlock(prompt.tenant(), *reserved->token, prompt.keys[i], i);
    CAIRN_CHECK_OK(committed.status());
    CAIRN_CHECK(committed->errors.empty());
    ++written;
    CAIRN_CHECK(committed->blocks_present == written);
  }
  return written;
}

LookupAnswer TestStore::Lookup(const std::string& tenant, const TestPrompt& prompt, bool touch) {
  LookupQuery query;
  query.prompts.push_back({.keys = prompt.keys, .tokens = prompt.tokens});
  query.touch = touch;
  return store->Lookup(tenant, fingerprint_, query);
}

uint32_t TestStore::PresentFor(const std::string& tenant, const TestPrompt& prompt) {
  return Lookup(tenant, prompt).prompts[0].present;
}

std::vector<BlockState> TestStore::States(const TestPrompt& prompt) {
  std::vector<BlockState> states;
  const LookupAnswer answer = Lookup(prompt.tenant(), prompt);
  for (const BlockAnswer& block : answer.prompts[0].blocks) states.push_back(block.state);
  return states;
}

LookupAnswer TestStore::Lease(const TestPrompt& prompt, uint32_t readers, absl::Duration ttl) {
  LookupQuery query;
  query.prompts.push_back({.keys = prompt.keys, .tokens = prompt.tokens});
  query.lease = LeaseWish{.readers = readers, .ttl = ttl};
  return store->Lookup(prompt.tenant(), fingerprint_, query);
}

BlockPin TestStore::Pin(const std::string& tenant, const BlockKey& key,
                        const std::optional<LeaseId>& lease) {
  auto answer = store->PinForRead(tenant, fingerprint_, lease, key);
  return answer.ok() ? std::move(answer->pin) : BlockPin();
}

bool TestStore::Intact(const BlockPin& pin, const BlockKey& key) {
  if (!pin) return false;
  const PayloadMap* map = &Map();
  for (size_t i = 0; i < map->segment_count(); ++i) {
    if (!pin.SegmentPresent(i)) continue;
    const absl::Span<const uint8_t> bytes =
        pin.bytes().subspan(map->SegmentOffset(i), map->SegmentBytesAt(i));
    if (SegmentDigest(key, map->SegmentAt(i), bytes) != pin.digests()[i]) return false;
    const std::vector<uint8_t> expected = Bytes(key, map->SegmentAt(i), 1);
    if (!std::equal(expected.begin(), expected.end(), bytes.begin(), bytes.end())) return false;
  }
  return true;
}

void TestStore::Advance(absl::Duration by) {
  while (by > absl::ZeroDuration()) {
    const absl::Duration step = std::min(by, kTick);
    clock.Advance(step);
    time.Tick();
    store->Tick();
    by -= step;
  }
}

void TestStore::AdvancePastEverything() { Advance(absl::Minutes(3)); }

absl::Status TestStore::Quiet() {
  if (absl::Status audit = store->Audit(); !audit.ok()) return audit;
  const StoreStatus status = store->Status();
  if (status.pins != 0) return absl::InternalError("pins are left");
  if (status.pinned_bytes != 0) return absl::InternalError("pinned bytes are left");
  if (status.leases != 0) return absl::InternalError("leases are left");
  if (status.tokens != 0) return absl::InternalError("tokens are left");
  if (status.reserved_bytes != 0) return absl::InternalError("reserved bytes are left");
  for (const TenantStatus& tenant : store->Tenants()) {
    if (tenant.leased_bytes != 0) return absl::InternalError("leased bytes are left");
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
