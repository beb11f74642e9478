#include "tests/cluster/checked_payload.h"

#include <algorithm>
#include <utility>

#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"

namespace cairn::testing {

PayloadOf::PayloadOf(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys)
    : bytes_(keys.size() * name_space.block_bytes()),
      blocks_(&name_space.payload_map(), absl::MakeSpan(bytes_)) {
  for (size_t i = 0; i < keys.size(); ++i) {
    FillSyntheticBlock(
        name_space.payload_map(), keys[i],
        absl::MakeSpan(bytes_).subspan(i * name_space.block_bytes(), name_space.block_bytes()));
  }
}

absl::StatusOr<PutResult> PutPrompt(CacheNodeClient& client, const NamespaceHandle& name_space,
                                    const Prompt& prompt, bool wait_when_exhausted) {
  PutOptions options;
  options.wait_when_exhausted = wait_when_exhausted;
  return client.Put(name_space, prompt, PayloadOf(name_space, prompt.keys()), options);
}

CheckedRead GetAndCompare(CacheNodeClient& client, const NamespaceHandle& name_space,
                          absl::Span<const BlockKey> keys, const GetOptions& options) {
  CAIRN_CHECK_MSG(options.parts.empty(), "whole blocks only");
  // Not zero beforehand, so that bytes nobody wrote are seen.
  std::vector<uint8_t> bytes(keys.size() * name_space.block_bytes(), 0xa5);
  CheckedRead read;
  read.result =
      client.Get(name_space, keys,
                 ContiguousBlocks(&name_space.payload_map(), absl::MakeSpan(bytes)), options);
  read.wrong = CountWrong(name_space, keys, bytes, read.result);
  return read;
}

absl::StatusOr<LeasedRead> LeaseAndCompare(CacheNodeClient& client,
                                           const NamespaceHandle& name_space,
                                           const NumberedPrompt& prompt, LookupOptions options) {
  options.lease_readers = 1;
  absl::StatusOr<LookupAnswer> answer = client.Lookup(name_space, prompt.span(), options);
  if (!answer.ok()) return answer.status();
  LeasedRead read;
  read.present = answer->prompts[0].blocks_present;
  if (!answer->lease) return read;
  read.leased = answer->prompts[0].blocks_leased;
  GetOptions get;
  get.lease = answer->lease->id();
  const CheckedRead got = GetAndCompare(
      client, name_space, absl::MakeConstSpan(prompt.keys()).subspan(0, read.leased), get);
  read.usable = static_cast<uint32_t>(got.result.usable_prefix);
  read.wrong = got.wrong;
  read.get = got.result.status;
  const absl::Status end = answer->lease->End({&read.usable, 1}).status();
  if (read.get.ok()) read.get = end;
  return read;
}

uint64_t CountWrong(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                    absl::Span<const uint8_t> bytes, const GetResult& result) {
  const PayloadMap& map = name_space.payload_map();
  if (result.segments_per_block == 0) return 0;  // The client refused the call itself.
  CAIRN_CHECK(result.segments_per_block == map.segment_count());
  uint64_t wrong = result.mismatches_total;
  for (size_t block = 0; block < keys.size(); ++block) {
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const absl::Span<const uint8_t> segment =
          bytes.subspan(block * map.block_bytes() + map.SegmentOffset(i), map.SegmentBytesAt(i));
      const bool right =
          result.SegmentGood(block, i)
              ? IsSyntheticSegment(map, keys[block], map.SegmentAt(i), segment)
              : std::all_of(segment.begin(), segment.end(), [](uint8_t b) { return b == 0; });
      if (!right) ++wrong;
    }
  }
  return wrong;
}

}  // namespace cairn::testing
