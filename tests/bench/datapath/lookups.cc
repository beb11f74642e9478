// Lookups by key of prompts of 1,000 present blocks: how many keys a second from four callers at
// once, how long one call takes alone, and the 99th percentile of a small one (100 keys) while
// another connection of the same client always has one get of 2 MiB in flight, over the same
// without, in turns.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/replay/latency_recorder.h"
#include "common/base/clock.h"
#include "common/server/thread_priority.h"
#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/datapath/rank_threads.h"
#include "tests/bench/datapath/turns.h"

namespace cairn::bench {
namespace {

using replay::LatencyRecorder;

constexpr size_t kCallers = 4;
constexpr size_t kPrompts = 32;
constexpr size_t kKeys = 1000;
constexpr size_t kSmallKeys = 100;
constexpr size_t kCallsPerRound = 64;  // Of each caller.
constexpr int kRounds = 15;
constexpr size_t kAloneCalls = 2000;
constexpr size_t kSmallCallsPerTurn = 500;
constexpr int kBulkTurns = 15;

class Lookups {
 public:
  explicit Lookups(std::vector<std::unique_ptr<BenchClient>> clients)
      : clients_(std::move(clients)), threads_(kCallers) {}

  absl::Status Prepare() {
    absl::StatusOr<NamespaceHandle> tiny = RegisterLayout(client(), TinyBlocks());
    if (!tiny.ok()) return tiny.status();
    absl::StatusOr<NamespaceHandle> large = RegisterLayout(client(), TwoMebibyteParts());
    if (!large.ok()) return large.status();
    tiny_ = std::make_unique<NamespaceHandle>(*std::move(tiny));
    large_ = std::make_unique<NamespaceHandle>(*std::move(large));
    const std::vector<uint8_t> bytes = MakeBytes(large_->block_bytes());
    for (uint32_t i = 0; i < kPrompts; ++i) {
      const BenchPrompt prompt(client(), *tiny_, i, kKeys);
      absl::Status put = PutAll(client(), *tiny_, prompt.prompt(), bytes);
      if (!put.ok()) return put;
      prompts_.push_back(Prompt::FromKeys(prompt.keys()));
    }
    small_ = std::make_unique<Prompt>(Prompt::FromKeys(std::vector<BlockKey>(
        prompts_[0].keys().begin(), prompts_[0].keys().begin() + kSmallKeys)));
    const BenchPrompt bulk(client(), *large_, 0, 1);
    bulk_key_ = bulk.keys()[0];
    return PutAll(client(), *large_, bulk.prompt(), bytes);
  }

  absl::StatusOr<double> RoundSeconds() {
    return SecondsOf([this] {
      return threads_.Run([this](size_t caller) -> absl::Status {
        for (size_t i = 0; i < kCallsPerRound; ++i) {
          const Prompt& prompt = prompts_[(caller * kCallsPerRound + i) % kPrompts];
          if (absl::Status status = Lookup(**clients_[caller], prompt); !status.ok()) return status;
        }
        return absl::OkStatus();
      });
    });
  }

  absl::Status LookupAlone(size_t calls, LatencyRecorder* latencies) {
    for (size_t i = 0; i < calls; ++i) {
      absl::Status status = TimedLookup(prompts_[i % kPrompts], latencies);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // With `bulk`, beside a get that is always in flight.
  absl::Status LookupSmall(bool bulk, LatencyRecorder* latencies) {
    std::atomic<bool> end{false};
    absl::Status got;
    std::thread getter;
    if (bulk) getter = std::thread([&] { got = GetUntil(end); });
    absl::Status status;
    for (size_t i = 0; i < kSmallCallsPerTurn && status.ok(); ++i) {
      status = TimedLookup(*small_, latencies);
    }
    end.store(true);
    if (bulk) getter.join();
    return status.ok() ? got : status;
  }

 private:
  CacheNodeClient& client() { return **clients_[0]; }

  absl::Status GetUntil(const std::atomic<bool>& end) {
    std::vector<uint8_t> bytes(large_->block_bytes());
    absl::Status status;
    while (!end.load() && status.ok()) {
      status = GetAll(client(), *large_, {&bulk_key_, 1}, {}, absl::MakeSpan(bytes));
    }
    return status;
  }

  absl::Status TimedLookup(const Prompt& prompt, LatencyRecorder* latencies) {
    const absl::Time start = clock_.SteadyNow();
    absl::Status status = Lookup(client(), prompt);
    latencies->Record(clock_.SteadyNow() - start);
    return status;
  }

  absl::Status Lookup(CacheNodeClient& client, const Prompt& prompt) {
    const absl::StatusOr<LookupAnswer> answer =
        client.Lookup(*tiny_, {&prompt, 1}, {.by_keys = true});
    if (!answer.ok()) return answer.status();
    if (answer->prompts[0].blocks_present == prompt.block_count()) return absl::OkStatus();
    return absl::InternalError("a lookup missed what was put");
  }

  std::vector<std::unique_ptr<BenchClient>> clients_;
  RankThreads threads_;
  SystemClock clock_;
  std::unique_ptr<NamespaceHandle> tiny_;
  std::unique_ptr<NamespaceHandle> large_;
  std::vector<Prompt> prompts_;
  std::unique_ptr<Prompt> small_;
  BlockKey bulk_key_;
};

absl::Status Measure(JsonReport* report) {
  const absl::StatusOr<std::unique_ptr<BenchNode>> node = BenchNode::Start({.pool_mib = 256});
  if (!node.ok()) return node.status();
  std::vector<std::unique_ptr<BenchClient>> clients;
  for (size_t i = 0; i < kCallers; ++i) clients.push_back((*node)->Connect(Transport::kTcp));
  Lookups lookups(std::move(clients));
  if (absl::Status status = lookups.Prepare(); !status.ok()) return status;
  const absl::StatusOr<double> round = MedianOf([&] { return lookups.RoundSeconds(); }, kRounds);
  if (!round.ok()) return round.status();
  report->Add("lookup_keys_per_second", kCallers * kCallsPerRound * kKeys / *round);
  LatencyRecorder alone;
  if (absl::Status status = lookups.LookupAlone(kAloneCalls, &alone); !status.ok()) return status;
  report->Add("lookup_1000_keys_p50_ms", absl::ToDoubleMilliseconds(alone.Quantile(0.5)));
  report->Add("lookup_1000_keys_p99_ms", absl::ToDoubleMilliseconds(alone.Quantile(0.99)));
  // What a neighbour does to one turn is not of account: medians of the turns.
  LatencyRecorder busy;
  const auto p99_ms = [&](bool bulk) -> absl::StatusOr<double> {
    LatencyRecorder turn;
    if (absl::Status status = lookups.LookupSmall(bulk, &turn); !status.ok()) return status;
    if (bulk) busy.Merge(turn);
    return absl::ToDoubleMilliseconds(turn.Quantile(0.99));
  };
  const absl::StatusOr<Turns> turns =
      MeasureTurns([&] { return p99_ms(true); }, [&] { return p99_ms(false); }, kBulkTurns);
  if (!turns.ok()) return turns.status();
  const double idle_p99_ms = turns->floor_seconds;
  const double busy_p99_ms = turns->product_seconds;
  report->Add("lookup_p99_idle_ms", idle_p99_ms);
  report->Add("lookup_p99_under_bulk_ms", busy_p99_ms);
  report->Add("lookup_p50_under_bulk_ms", absl::ToDoubleMilliseconds(busy.Quantile(0.5)));
  report->Add("lookup_p99_under_bulk_ratio", busy_p99_ms / idle_p99_ms);
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLookups(JsonReport* report) {
  absl::Status status;
  // As the node does, and as a worker's thread should that must not wait.
  std::thread([&] {
    TakeShortTurns();
    status = Measure(report);
  }).join();
  return status;
}

}  // namespace cairn::bench
