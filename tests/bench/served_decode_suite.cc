// What serving attention costs, against the kernel on the same pages of the same pool.
//
// One layer of 8 KV heads of 128 in bfloat16 (4 KiB a token), 32 query heads, two threads, a node
// in this process.
//   - throughput: a step of 8 sequences of 8 k tokens through a stream over a Unix socket, against
//     one call of the kernel over their pages;
//   - round trip: a step of one sequence with one block, against an empty unary call over the same
//     kind of socket;
//   - sharing: 16 callers, each with a connection and a stream of its own, that ask at once: all
//   over one prefix of
//     8 k tokens, against each over a prefix of its own. With one query head a KV head, where
//     reading KV is what costs; with four (_g4) computing for 16 callers costs as much;
//   - break-even: answers of how many tokens make fetching a prefix over TCP (all bytes verified)
//     cheaper than asking for each of them over TCP, where the fetched one is attended at the
//     kernel's speed. Layers do not matter: each side takes as many times as long.
// The service's answers are held against the kernel's before anything is timed.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/decode/attend_result.h"
#include "common/base/check.h"
#include "tests/bench/ratio.h"
#include "tests/bench/served/pool_kernel.h"
#include "tests/bench/served/served_node.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr int kThreads = 2;
constexpr uint64_t kPoolMib = 2560;
constexpr size_t kBlocks8k = 8192 / kServedBlockTokens;
constexpr size_t kBatch = 8;
constexpr size_t kCallers = 16;
constexpr uint32_t kLongPrompt = kCallers;  // After those of the callers.
constexpr uint32_t kShortPrompt = kCallers + 1;
constexpr uint32_t kThousandTokens[] = {8, 32, 128};
constexpr float kAnswerTolerance = 1e-4f;

using Transport = ServedNode::Transport;

// One stream, asked and awaited.
class Asker {
 public:
  Asker(ServedNode* node, Transport transport) : stream_(node->OpenStream(transport, &queue_)) {}
  ~Asker() { stream_->Close(absl::Seconds(1)); }

  std::vector<v1::AttendResult> Ask(const v1::DecodeRequest& request) {
    absl::StatusOr<std::vector<v1::AttendResult>> results = stream_->Await(stream_->Send(request));
    CAIRN_CHECK_OK(results.status());
    for (const v1::AttendResult& result : *results) CAIRN_CHECK_OK(ItemStatus(result));
    return *std::move(results);
  }

 private:
  CallQueue queue_;
  std::unique_ptr<DecodeStream> stream_;
};

// Several callers, each with a connection and a stream of its own; over one queue, so that one
// thread can have all of them ask at once.
class Callers {
 public:
  Callers(ServedNode* node, const std::vector<SequenceId>& sequences, uint32_t query_heads)
      : clock_(node->clock()) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      clients_.push_back(node->Connect());
      streams_.push_back(node->OpenStream(clients_.back().get(), &queue_));
      requests_.push_back(StepOver({&sequences[i], 1}, kBlocks8k * kServedBlockTokens,
                                   static_cast<uint32_t>(i), query_heads));
    }
    for (const auto& stream : streams_) pointers_.push_back(stream.get());
  }
  ~Callers() {
    for (const auto& stream : streams_) stream->Close(absl::Seconds(1));
  }

  void AskAll() {
    std::vector<uint64_t> steps;
    for (size_t i = 0; i < streams_.size(); ++i) steps.push_back(streams_[i]->Send(requests_[i]));
    for (size_t i = 0; i < streams_.size(); ++i) {
      auto results = streams_[i]->Take(steps[i]);
      while (!results.has_value()) {
        CAIRN_CHECK_OK(streams_[i]->status());
        AwaitAny(&queue_, clock_, pointers_);
        results = streams_[i]->Take(steps[i]);
      }
      CAIRN_CHECK_OK(ItemStatus(results->front()));
    }
  }

 private:
  const Clock& clock_;
  std::vector<std::unique_ptr<DecodeClient>> clients_;
  CallQueue queue_;
  std::vector<std::unique_ptr<DecodeStream>> streams_;
  std::vector<DecodeStream*> pointers_;
  std::vector<v1::DecodeRequest> requests_;
};

absl::StatusOr<std::vector<SequenceId>> OpenAll(ServedNode* node, size_t count, bool shared) {
  std::vector<SequenceId> sequences;
  for (uint32_t i = 0; i < count; ++i) {
    absl::StatusOr<SequenceId> opened = node->Open(shared ? 0 : i, kBlocks8k);
    if (!opened.ok()) return opened.status();
    sequences.push_back(*opened);
  }
  return sequences;
}

absl::Status CheckAnswers(const std::vector<v1::AttendResult>& results, const PoolKernel& kernel) {
  for (size_t i = 0; i < results.size(); ++i) {
    const absl::Span<const float> want = kernel.OutputOf(i);
    if (results[i].output().size() != want.size() * sizeof(float)) {
      return absl::InternalError("an answer has another size than the kernel's");
    }
    const auto* const got = reinterpret_cast<const float*>(results[i].output().data());
    for (size_t k = 0; k < want.size(); ++k) {
      if (!(std::abs(got[k] - want[k]) <= kAnswerTolerance)) {
        return absl::DataLossError(absl::StrCat("sequence ", i, ", element ", k, ": served ",
                                                got[k], ", the kernel has ", want[k]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureThroughput(ServedNode* node, JsonReport* report) {
  std::vector<std::vector<node::BlockPin>> pins;
  for (uint32_t i = 0; i < kBatch; ++i) {
    absl::StatusOr<std::vector<node::BlockPin>> one = node->Pin(i, kBlocks8k);
    if (!one.ok()) return one.status();
    pins.push_back(*std::move(one));
  }
  const absl::StatusOr<std::vector<SequenceId>> sequences = OpenAll(node, kBatch, false);
  if (!sequences.ok()) return sequences.status();
  PoolKernel kernel(pins, kThreads);
  Asker asker(node, Transport::kUnix);
  const v1::DecodeRequest request = StepOver(*sequences, kBlocks8k * kServedBlockTokens, 0);
  kernel.Run();
  if (absl::Status status = CheckAnswers(asker.Ask(request), kernel); !status.ok()) return status;
  const RatioResult result = MeasureRatio([&] { asker.Ask(request); }, [&] { kernel.Run(); },
                                          {.rounds_min = 30, .budget = absl::Seconds(8)});
  report->Add("throughput_over_kernel", result.ratio);
  report->Add("served_step_ms", result.product_seconds * 1e3);
  report->Add("kernel_step_ms", result.floor_seconds * 1e3);
  report->Add(
      "served_tokens_per_second",
      static_cast<double>(kBatch * kBlocks8k * kServedBlockTokens) / result.product_seconds);
  node->Close(*sequences);
  return absl::OkStatus();
}

absl::Status MeasureRoundTrip(ServedNode* node, JsonReport* report) {
  const absl::StatusOr<SequenceId> sequence = node->Open(kShortPrompt, 1);
  if (!sequence.ok()) return sequence.status();
  Asker asker(node, Transport::kUnix);
  const v1::DecodeRequest request = StepOver({&*sequence, 1}, kServedBlockTokens, 0);
  const RatioResult result =
      MeasureRatio([&] { asker.Ask(request); }, [&] { CAIRN_CHECK_OK(node->CallEmpty()); },
                   {.rounds_min = 2000, .rounds_max = 20000, .budget = absl::Seconds(4)});
  report->Add("layer_rtt_over_empty_rpc", 1 / result.ratio);
  report->Add("layer_rtt_us", result.product_seconds * 1e6);
  report->Add("empty_rpc_us", result.floor_seconds * 1e6);
  node->Close({&*sequence, 1});
  return absl::OkStatus();
}

absl::Status MeasureSharing(ServedNode* node, JsonReport* report) {
  const absl::StatusOr<std::vector<SequenceId>> shared = OpenAll(node, kCallers, true);
  if (!shared.ok()) return shared.status();
  const absl::StatusOr<std::vector<SequenceId>> apart = OpenAll(node, kCallers, false);
  if (!apart.ok()) return apart.status();
  for (const uint32_t query_heads : {kServedFewHeads, kServedQueryHeads}) {
    Callers together(node, *shared, query_heads);
    Callers alone(node, *apart, query_heads);
    const RatioResult result = MeasureRatio([&] { together.AskAll(); }, [&] { alone.AskAll(); },
                                            {.rounds_min = 20, .budget = absl::Seconds(8)});
    const std::string suffix = query_heads == kServedFewHeads ? "" : "_g4";
    report->Add("shared_prefix_speedup" + suffix, result.ratio);
    report->Add("shared_step_ms" + suffix, result.product_seconds * 1e3);
    report->Add("unshared_step_ms" + suffix, result.floor_seconds * 1e3);
  }
  node->Close(*shared);
  node->Close(*apart);
  return absl::OkStatus();
}

absl::Status MeasureBreakEven(ServedNode* node, uint32_t thousand_tokens, JsonReport* report) {
  const uint32_t blocks = thousand_tokens * 1024 / kServedBlockTokens;
  const uint64_t tokens = uint64_t{blocks} * kServedBlockTokens;
  std::vector<std::vector<node::BlockPin>> pins(1);
  absl::StatusOr<std::vector<node::BlockPin>> pinned = node->Pin(kLongPrompt, blocks);
  if (!pinned.ok()) return pinned.status();
  pins[0] = *std::move(pinned);
  const uint64_t bytes_moved = blocks * pins[0][0].bytes().size();
  const absl::StatusOr<SequenceId> sequence = node->Open(kLongPrompt, blocks);
  if (!sequence.ok()) return sequence.status();
  PoolKernel kernel(pins, kThreads);
  Asker asker(node, Transport::kTcp);
  const v1::DecodeRequest request = StepOver({&*sequence, 1}, tokens, 0);
  const RatioResult token = MeasureRatio([&] { asker.Ask(request); }, [&] { kernel.Run(); },
                                         {.rounds_min = 20, .budget = absl::Seconds(3)});
  std::vector<uint8_t> bytes(bytes_moved);
  absl::Status fetched;
  const auto fetch = [&] {
    fetched.Update(node->Fetch(kLongPrompt, blocks, absl::MakeSpan(bytes)));
  };
  const RatioResult moved = MeasureRatio(fetch, [] {}, {.rounds_min = 3, .rounds_max = 8});
  if (!fetched.ok()) return fetched;
  const double saved = token.product_seconds - token.floor_seconds;
  // -1: each token costs no more served than at home, so fetching never pays.
  const double even = saved > 0 ? std::floor(moved.product_seconds / saved) : -1;
  const std::string suffix = absl::StrCat("_", thousand_tokens, "k");
  report->Add(absl::StrCat("break_even_new_tokens", suffix), even);
  report->Add(absl::StrCat("fetch_layer_ms", suffix), moved.product_seconds * 1e3);
  report->Add(absl::StrCat("served_token_layer_ms", suffix), token.product_seconds * 1e3);
  report->Add(absl::StrCat("local_token_layer_ms", suffix), token.floor_seconds * 1e3);
  report->Add(
      absl::StrCat("fetch_bytes_over_sent_bytes_a_token", suffix),
      static_cast<double>(bytes_moved) /
          static_cast<double>(request.ByteSizeLong() + asker.Ask(request)[0].ByteSizeLong()));
  node->Close({&*sequence, 1});
  return absl::OkStatus();
}

}  // namespace

absl::Status RunServedDecodeSuite(const SuiteOptions&, JsonReport* report) {
  absl::StatusOr<std::unique_ptr<ServedNode>> node = ServedNode::Start(kPoolMib, kThreads);
  if (!node.ok()) return node.status();
  ServedNode* const served = node->get();
  for (uint32_t i = 0; i < kCallers; ++i) {
    if (absl::Status status = served->Put(i, kBlocks8k); !status.ok()) return status;
  }
  absl::Status status = served->Put(kLongPrompt, 128 * 1024 / kServedBlockTokens);
  if (status.ok()) status = served->Put(kShortPrompt, 1);
  if (status.ok()) status = MeasureThroughput(served, report);
  if (status.ok()) status = MeasureRoundTrip(served, report);
  if (status.ok()) status = MeasureSharing(served, report);
  for (const uint32_t thousand_tokens : kThousandTokens) {
    if (status.ok()) status = MeasureBreakEven(served, thousand_tokens, report);
  }
  return status;
}

}  // namespace cairn::bench
