#include "tests/bench/eviction/block_trace.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "client/replay/block_ids.h"
#include "client/replay/block_token.h"
#include "common/base/check.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kBlocksMax = UINT32_MAX - 1;
constexpr uint64_t kRunsMax = UINT32_MAX;

struct Arrived {
  int64_t arrival_ms = 0;
  uint64_t name_space = 0;
  uint32_t tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<replay::IdRun> ids;
};

// Those ids of a prompt that the trace itself gives.
std::vector<replay::IdRun> GivenIds(const replay::TracePrompt& prompt) {
  std::vector<replay::IdRun> given;
  for (const replay::IdRun& run : prompt.runs()) {
    if (run.first < replay::kTraceIdsEnd) given.push_back(run);
  }
  return given;
}

absl::StatusOr<std::vector<Arrived>> ReadAll(replay::TraceReader* reader, uint32_t block_tokens,
                                             const BlockTraceOptions& options) {
  replay::BlockIds full_blocks(block_tokens);
  std::vector<Arrived> arrived;
  while (true) {
    absl::StatusOr<std::optional<replay::TraceRequest>> next = reader->Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    const replay::TraceRequest& request = **next;
    if (!options.source.empty() && request.source != options.source) continue;
    Arrived one;
    one.arrival_ms = std::llround(request.arrival_s * 1e3);
    one.name_space = request.name_space();
    one.tokens = static_cast<uint32_t>(request.input_tokens());
    one.output_tokens = static_cast<uint32_t>(request.output_tokens);
    if (options.partial && request.prompt.block_tokens() != 0) {
      one.ids = GivenIds(request.prompt);
    } else {
      absl::StatusOr<std::vector<replay::IdRun>> ids = full_blocks.RunsOf(request.prompt);
      if (!ids.ok()) return ids.status();
      one.ids = *std::move(ids);
    }
    arrived.push_back(std::move(one));
  }
  std::stable_sort(arrived.begin(), arrived.end(),
                   [](const Arrived& a, const Arrived& b) { return a.arrival_ms < b.arrival_ms; });
  return arrived;
}

}  // namespace

// Numbers the blocks of prompts, one after another.
class BlockTraceBuilder {
 public:
  explicit BlockTraceBuilder(BlockTrace* trace) : trace_(trace) {}

  // False: there are more blocks or runs than numbers.
  bool Add(const Arrived& arrived) {
    BlockTrace::Request request{.first_run = static_cast<uint32_t>(trace_->runs_.size()),
                                .tokens = arrived.tokens,
                                .output_tokens = arrived.output_tokens,
                                .arrival_s = static_cast<double>(arrived.arrival_ms) / 1e3};
    Block parent = BlockTrace::kNone;
    for (const replay::IdRun& run : arrived.ids) {
      for (uint64_t id = run.first; id < run.first + run.count; ++id) {
        if (trace_->parents_.size() >= kBlocksMax || trace_->runs_.size() >= kRunsMax) return false;
        const Block block = Number(parent, id, arrived.name_space);
        Append(parent, block, request.first_run);
        parent = block;
        ++request.blocks;
      }
    }
    request.runs = static_cast<uint32_t>(trace_->runs_.size() - request.first_run);
    trace_->block_refs_ += request.blocks;
    trace_->tokens_ += request.tokens;
    trace_->requests_.push_back(request);
    return true;
  }

 private:
  using Block = BlockTrace::Block;

  Block Number(Block parent, uint64_t id, uint64_t name_space) {
    std::vector<Block>& parents = trace_->parents_;
    const auto fresh = static_cast<Block>(parents.size());
    if (parent == BlockTrace::kNone) {
      const auto [known, is_new] = roots_.try_emplace({name_space, id}, fresh);
      if (is_new) Make(parent, id);
      return known->second;
    }
    // Most blocks follow the one that was numbered before them.
    const Block next = parent + 1;
    if (next < fresh && parents[next] == parent && ids_[next] == id) return next;
    if (next != fresh) {
      const auto [known, is_new] = branches_.try_emplace({parent, id}, fresh);
      if (is_new) Make(parent, id);
      return known->second;
    }
    Make(parent, id);
    return fresh;
  }

  void Make(Block parent, uint64_t id) {
    trace_->parents_.push_back(parent);
    ids_.push_back(id);
  }

  void Append(Block parent, Block block, uint32_t first_run) {
    std::vector<BlockTrace::Run>& runs = trace_->runs_;
    const bool goes_on = runs.size() > first_run && block == parent + 1 &&
                         runs.back().first + runs.back().count == block;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({block, 1});
    }
  }

  BlockTrace* const trace_;
  std::vector<uint64_t> ids_;                                        // By block.
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, Block> roots_;  // By namespace and id.
  // By parent and id: those that do not have the number after their parent's.
  absl::flat_hash_map<std::pair<Block, uint64_t>, Block> branches_;
};

absl::StatusOr<BlockTrace> BlockTrace::Read(replay::TraceReader* reader,
                                            const BlockTraceOptions& options) {
  BlockTrace trace;
  trace.block_tokens_ = reader->block_tokens() != 0 ? reader->block_tokens() : options.block_tokens;
  absl::StatusOr<std::vector<Arrived>> arrived = ReadAll(reader, trace.block_tokens_, options);
  if (!arrived.ok()) return arrived.status();
  BlockTraceBuilder builder(&trace);
  for (const Arrived& request : *arrived) {
    if (!builder.Add(request)) {
      return absl::ResourceExhaustedError("the trace has more blocks than can be numbered");
    }
  }
  return trace;
}

void BlockTrace::PathOf(const Request& request, std::vector<Block>* path) const {
  path->resize(request.blocks);
  auto at = path->begin();
  for (const Run& run : RunsOf(request)) {
    std::iota(at, at + run.count, run.first);
    at += run.count;
  }
  CAIRN_CHECK(at == path->end());
}

uint64_t BlockTrace::TokensOf(const Request& request, uint32_t blocks) const {
  return std::min<uint64_t>(uint64_t{blocks} * block_tokens_, request.tokens);
}

uint64_t BlockTrace::KeyOf(Block block) { return replay::SplitMix64(block); }

}  // namespace cairn::bench
