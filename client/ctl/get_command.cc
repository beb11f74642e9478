// cairnctl get: reads the blocks of a prompt that are there, under a lease, and verifies them.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cpp/synthetic_payload.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

// Bytes in memory at a time, but at least one block.
constexpr uint64_t kBatchBytes = uint64_t{64} << 20;

// What the batches gave so far.
struct Progress {
  uint32_t usable = 0;
  uint64_t bytes = 0;
  uint64_t segments = 0;
  uint64_t mismatches = 0;
};

// Whether each segment is what `put --generate` writes.
absl::Status CheckGenerated(const PayloadMap& map, absl::Span<const BlockKey> keys,
                            absl::Span<const uint8_t> bytes) {
  for (size_t block = 0; block < keys.size(); ++block) {
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const SegmentId id = map.SegmentAt(i);
      const auto segment =
          bytes.subspan(block * map.block_bytes() + map.SegmentOffset(i), map.SegmentBytesAt(i));
      if (IsSyntheticSegment(map, keys[block], id, segment)) continue;
      return absl::DataLossError(absl::StrCat("block ", ToHex(keys[block].view()), ", group ",
                                              id.group, ", slice ", id.slice, ", layer ", id.layer,
                                              ": not the bytes that --generate writes"));
    }
  }
  return absl::OkStatus();
}

class Fetcher {
 public:
  Fetcher(const CommandLine& line, const NamespaceHandle& handle, NodeSession* node)
      : line_(line), handle_(handle), node_(*node) {}

  absl::Status Open() {
    if (!line_.Given("out")) return absl::OkStatus();
    out_.open(line_.Get("out"), std::ios::binary | std::ios::trunc);
    if (!out_) {
      return absl::NotFoundError(absl::StrCat(line_.Get("out"), ": cannot be written"));
    }
    return absl::OkStatus();
  }

  // Fetches keys until the first that cannot be used.
  absl::Status Fetch(absl::Span<const BlockKey> keys, const LeaseId& lease) {
    const size_t at_once = std::clamp<size_t>(
        static_cast<size_t>(kBatchBytes / handle_.block_bytes()), 1, kKeysAtOnce);
    for (size_t first = 0; first < keys.size(); first += at_once) {
      const auto batch = keys.subspan(first, at_once);
      std::vector<uint8_t> bytes(batch.size() * handle_.block_bytes());
      const GetResult got = node_->Get(
          handle_, batch, ContiguousBlocks(&handle_.payload_map(), absl::MakeSpan(bytes)),
          {.lease = lease, .parts = {}});
      progress_.bytes += got.bytes_verified;
      progress_.segments += got.segments_verified;
      progress_.mismatches += got.mismatches_total;
      progress_.usable += static_cast<uint32_t>(got.usable_prefix);
      if (!got.status.ok()) return got.status;
      const auto usable =
          absl::MakeConstSpan(bytes).first(got.usable_prefix * handle_.block_bytes());
      if (absl::Status status = Take(batch.first(got.usable_prefix), usable); !status.ok()) {
        return status;
      }
      if (got.usable_prefix < batch.size()) break;
    }
    return absl::OkStatus();
  }

  const Progress& progress() const { return progress_; }

 private:
  static constexpr size_t kKeysAtOnce = 1024;

  absl::Status Take(absl::Span<const BlockKey> keys, absl::Span<const uint8_t> bytes) {
    if (line_.Given("verify-generated")) {
      const absl::Status status = CheckGenerated(handle_.payload_map(), keys, bytes);
      if (!status.ok()) return status;
    }
    if (!out_.is_open()) return absl::OkStatus();
    out_.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    out_.flush();
    if (out_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(line_.Get("out"), ": cannot be written"));
  }

  const CommandLine& line_;
  const NamespaceHandle& handle_;
  NodeSession& node_;
  std::ofstream out_;
  Progress progress_;
};

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  NodeSession node(line, TenantUse::kRead);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<Prompt> prompt = node->MakePrompt(*handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  Fetcher fetcher(line, *handle, &node);
  if (absl::Status status = fetcher.Open(); !status.ok()) return status;

  absl::StatusOr<LookupAnswer> found = node->Lookup(*handle, {&*prompt, 1}, {.lease_readers = 1});
  if (!found.ok()) return found.status();
  const uint32_t leased = found->prompts[0].blocks_leased;
  if (found->lease && leased > 0) {
    const auto keys = absl::MakeConstSpan(prompt->keys()).first(leased);
    const absl::Status status = fetcher.Fetch(keys, found->lease->id());
    const uint32_t usable[] = {fetcher.progress().usable};
    const absl::StatusOr<bool> ended = found->lease->End(usable);
    if (!status.ok()) return status;
    if (!ended.ok()) return ended.status();
  }
  const Progress& progress = fetcher.progress();
  absl::Status printed = Print(line,
                               {{"blocks_total", prompt->block_count()},
                                {"blocks_present", found->prompts[0].blocks_present},
                                {"blocks_usable", progress.usable},
                                {"bytes_verified", progress.bytes},
                                {"digests_verified", progress.segments},
                                {"digests_wrong", progress.mismatches},
                                {"bytes_out_of_node_memory", node->local_stats().bytes_copied}},
                               streams.out);
  if (printed.ok() && progress.mismatches > 0) {
    return absl::DataLossError("the node sent bytes that do not match their digests");
  }
  if (printed.ok() && progress.usable == 0 && line.Given("verify-generated")) {
    return absl::NotFoundError(
        "no block of the prompt could be read, so nothing was verified: `cairnctl put --generate` "
        "writes them");
  }
  return printed;
}

}  // namespace

Command GetCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back({"out", "FILE", "", "where to write the bytes of the usable blocks"});
  flags.push_back({"verify-generated", "", "", "also compare with what `put --generate` writes"});
  return {.name = "get",
          .summary = "reads the leading blocks of a prompt that are there, and verifies them",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
