// cairnctl put: writes the blocks of a prompt that are not there yet.
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cpp/synthetic_payload.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"

namespace cairn::ctl {
namespace {

// Segments of whole blocks, from a file in slot order or computed; one segment in memory at a time.
class PayloadSource {
 public:
  PayloadSource(const PayloadMap* map, const Prompt* prompt) : map_(map), prompt_(prompt) {}

  // The file must hold exactly the prompt's full blocks.
  absl::Status Open(const std::string& path) {
    file_.open(path, std::ios::binary | std::ios::ate);
    if (!file_) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
    const auto size = static_cast<uint64_t>(file_.tellg());
    const uint64_t wanted = prompt_->block_count() * map_->block_bytes();
    if (size == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", size, " bytes; ",
                                                   prompt_->block_count(), " blocks of ",
                                                   map_->block_bytes(), " are ", wanted));
  }

  // Empty, and so refused by the write, when the file cannot be read.
  absl::Span<const uint8_t> Bytes(size_t block, const SegmentId& id) {
    const size_t segment = *map_->FindSegment(id);
    bytes_.resize(map_->SegmentBytesAt(segment));
    if (!file_.is_open()) {
      FillSyntheticSegment(*map_, prompt_->keys()[block], id, absl::MakeSpan(bytes_));
      return bytes_;
    }
    file_.seekg(
        static_cast<std::streamoff>(block * map_->block_bytes() + map_->SegmentOffset(segment)));
    file_.read(reinterpret_cast<char*>(bytes_.data()), static_cast<std::streamsize>(bytes_.size()));
    return file_ ? absl::Span<const uint8_t>(bytes_) : absl::Span<const uint8_t>();
  }

 private:
  const PayloadMap* map_;
  const Prompt* prompt_;
  std::ifstream file_;
  std::vector<uint8_t> bytes_;
};

absl::Status Report(const CommandLine& line, const PutResult& put, const LocalStats& local,
                    const Streams& streams) {
  nlohmann::ordered_json result = {{"blocks_total", put.blocks_total},
                                   {"blocks_written", put.blocks_written},
                                   {"blocks_already_present", put.blocks_already_present},
                                   {"blocks_in_progress", put.blocks_in_progress},
                                   {"bytes_written", put.bytes_written},
                                   {"bytes_through_node_memory", local.bytes_staged},
                                   {"complete", put.complete()}};
  if (line.Given("pin-for")) result["blocks_pinned"] = put.blocks_pinned;
  if (put.stopped_by) result["stopped_by"] = v1::ReserveOutcome_Name(*put.stopped_by);
  return Print(line, result, streams.out);
}

// What has no full block is written in full, but seldom meant.
void SayIfEmpty(const Prompt& prompt, uint32_t block_tokens, const Streams& streams) {
  if (prompt.block_count() > 0 || streams.err == nullptr) return;
  *streams.err << "nothing to write: the prompt has no full block, which is " << block_tokens
               << " tokens\n";
}

absl::StatusOr<KeepWish> ReadKeepWish(const CommandLine& line) {
  constexpr uint32_t kPriorityMax = 100;
  KeepWish keep;
  if (line.Given("priority")) {
    const absl::StatusOr<uint32_t> priority = ParseNumber(line, "priority", kPriorityMax);
    if (!priority.ok()) return priority.status();
    keep.priority = *priority;
  } else if (line.Given("priority-for")) {
    return UsageError("--priority-for: of which --priority?");
  }
  for (const auto& [flag, time] :
       {std::pair("priority-for", &keep.priority_for), std::pair("ttl", &keep.ttl),
        std::pair("pin-for", &keep.pin_for)}) {
    const absl::StatusOr<absl::Duration> read = ParseKeepTime(line, flag);
    if (!read.ok()) return read.status();
    *time = *read;
  }
  return keep;
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  if (line.Given("payload") == line.Given("generate")) {
    return UsageError("give one of --payload FILE and --generate: what is to be written");
  }
  const absl::StatusOr<KeepWish> keep = ReadKeepWish(line);
  if (!keep.ok()) return keep.status();
  const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<PromptInput> input = ReadPrompt(line, streams);
  if (!input.ok()) return input.status();
  NodeSession node(line);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<Prompt> prompt = node->MakePrompt(*handle, input->Regions(), input->extras);
  if (!prompt.ok()) return prompt.status();
  SayIfEmpty(*prompt, handle->block_tokens(), streams);
  PayloadSource source(&handle->payload_map(), &*prompt);
  if (line.Given("payload")) {
    if (absl::Status status = source.Open(line.Get("payload")); !status.ok()) return status;
  }
  const absl::StatusOr<PutResult> put = node->Put(
      *handle, *prompt, [&](size_t block, const SegmentId& id) { return source.Bytes(block, id); },
      {.keep = *keep, .wait_when_exhausted = line.Given("wait")});
  if (!put.ok()) return put.status();
  return Report(line, *put, node->local_stats(), streams);
}

}  // namespace

Command PutCommand() {
  std::vector<FlagSpec> flags = {NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back(
      {"payload", "FILE", "", "bytes of the prompt's full blocks, one after the other"});
  flags.push_back({"generate", "", "", "write bytes that `get --verify-generated` can check"});
  flags.push_back({"wait", "", "", "wait for space when the node has none"});
  flags.push_back({"priority", "N", "", "0 to 100: the lowest makes room first; the node's 35"});
  flags.push_back({"priority-for", "DURATION", "", "how long that holds, as in 30m; else always"});
  flags.push_back({"ttl", "DURATION", "", "then the blocks, and what follows them, are gone"});
  flags.push_back({"pin-for", "DURATION", "",
                   "so long they are not evicted, within the pin budget of the tenant"});
  return {.name = "put",
          .summary = "writes the full blocks of a prompt that are not there yet",
          .flags = WithCommonFlags(flags, /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
