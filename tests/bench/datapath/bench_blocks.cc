#include "tests/bench/datapath/bench_blocks.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/wire/limits.h"

namespace cairn::bench {
namespace {

constexpr uint32_t kBlockTokens = 16;

Layout BfloatLayout(uint32_t layers, uint32_t slices) {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = layers,
                       .kv_heads = 8,
                       .key_dim = 128,
                       .value_dim = 128,
                       .dtype = Dtype::kBfloat16};
  return {
      .version = kLayoutVersion, .block_tokens = kBlockTokens, .slices = slices, .groups = {group}};
}

Layout OpaqueLayout(uint32_t token_bytes) {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = 1,
                       .dtype = Dtype::kOpaque,
                       .opaque_bytes = token_bytes};
  return {.version = kLayoutVersion, .block_tokens = kBlockTokens, .slices = 1, .groups = {group}};
}

std::vector<uint32_t> TokensOf(uint32_t number, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = i == 0 ? number : static_cast<uint32_t>(i);
  return tokens;
}

Prompt PromptOf(const CacheNodeClient& client, const NamespaceHandle& name_space,
                absl::Span<const uint32_t> tokens) {
  const Region region = {.scope = {}, .tokens = tokens, .external_ids = {}};
  absl::StatusOr<Prompt> prompt = client.MakePrompt(name_space, {&region, 1});
  CAIRN_CHECK_OK(prompt.status());
  return *std::move(prompt);
}

}  // namespace

Layout TwoMebibyteParts() { return BfloatLayout(32, 1); }
Layout QuarterMebibyteParts() { return BfloatLayout(16, 4); }
Layout FourKibibyteBlocks() { return OpaqueLayout(256); }
Layout TinyBlocks() { return OpaqueLayout(4); }

absl::StatusOr<NamespaceHandle> RegisterLayout(CacheNodeClient& client, const Layout& layout) {
  const Namespace fields = {.model = "bench",
                            .revision = "sha256:00",
                            .numerics = "",
                            .key_scheme = KeyScheme::kCairn,
                            .layout = layout};
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(fields);
  if (!fingerprint.ok()) return fingerprint.status();
  return client.RegisterNamespace(absl::StrCat("bench-", ToHex(fingerprint->view().substr(0, 4))),
                                  fields);
}

BenchPrompt::BenchPrompt(const CacheNodeClient& client, const NamespaceHandle& name_space,
                         uint32_t number, size_t blocks)
    : tokens_(TokensOf(number, blocks * name_space.block_tokens())),
      prompt_(PromptOf(client, name_space, tokens_)) {}

std::vector<uint8_t> MakeBytes(uint64_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint64_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  return bytes;
}

absl::Status PutAll(CacheNodeClient& client, const NamespaceHandle& name_space,
                    const Prompt& prompt, absl::Span<const uint8_t> bytes, PutOptions options) {
  const PayloadMap& map = name_space.payload_map();
  const size_t slots = bytes.size() / map.block_bytes();
  CAIRN_CHECK(slots > 0);
  const auto source = [&](size_t block, const SegmentId& id) {
    const size_t segment = *map.FindSegment(id);
    return bytes.subspan(block % slots * map.block_bytes() + map.SegmentOffset(segment),
                         map.SegmentBytesAt(segment));
  };
  options.wait_when_exhausted = true;
  const absl::StatusOr<PutResult> put = client.Put(name_space, prompt, source, options);
  if (!put.ok()) return put.status();
  if (put->blocks_written == prompt.block_count()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(put->blocks_written, " blocks written of ",
                                          prompt.block_count(), ", stopped by ",
                                          put->stopped_by.value_or(v1::ReserveOutcome{})));
}

absl::Status Remove(CacheNodeClient& client, const NamespaceHandle& name_space,
                    absl::Span<const BlockKey> keys) {
  while (!keys.empty()) {
    const absl::Span<const BlockKey> some = keys.subspan(0, kKeysPerDeleteMax);
    const absl::StatusOr<std::vector<bool>> removed = client.Delete(name_space.fingerprint(), some);
    if (!removed.ok()) return removed.status();
    keys.remove_prefix(some.size());
  }
  return absl::OkStatus();
}

absl::Status GetAll(CacheNodeClient& client, const NamespaceHandle& name_space,
                    absl::Span<const BlockKey> keys, const std::vector<PartLayers>& parts,
                    absl::Span<uint8_t> bytes, std::optional<LeaseId> lease) {
  const PayloadMap& map = name_space.payload_map();
  const absl::StatusOr<SegmentSelection> selection = SegmentSelection::Make(map, parts);
  if (!selection.ok()) return selection.status();
  const uint64_t first = map.SegmentOffset(*map.FindSegment(selection->At(0).id));
  const uint64_t stride = selection->bytes();
  CAIRN_CHECK(bytes.size() >= stride * keys.size());
  const auto place = [&](size_t block, const SegmentId& id) {
    const size_t segment = *map.FindSegment(id);
    return bytes.subspan(block * stride + map.SegmentOffset(segment) - first,
                         map.SegmentBytesAt(segment));
  };
  const GetResult got = client.Get(name_space, keys, place, {.lease = lease, .parts = parts});
  if (!got.status.ok()) return got.status;
  return got.AllGood() ? absl::OkStatus() : absl::InternalError("a get was not whole");
}

}  // namespace cairn::bench
