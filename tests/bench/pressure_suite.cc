// Lookups and gets of blocks in host memory, over a connection, while the node writes, evicts,
// spills and makes room on disk as fast as its disk takes it; and on the same node idle, in turns.
// The floor of each 99th percentile is the idle one; medians over the rounds count.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cache_node/service/node.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/client_parts.h"
#include "client/replay/latency_recorder.h"
#include "common/base/check.h"
#include "common/server/allocator.h"
#include "common/server/thread_priority.h"
#include "common/server/wake_event.h"
#include "tests/bench/store_load.h"
#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

using node::Node;
using node::NodeConfig;
using replay::LatencyRecorder;

constexpr int kRounds = 5;
constexpr absl::Duration kRound = absl::Seconds(3);
// Of the reader: a lookup each time, a get each second time.
constexpr absl::Duration kInterval = absl::Milliseconds(5);
constexpr ByteSize kPool = ByteSize::GiB(1);
constexpr ByteSize kDisk = ByteSize::GiB(4);
// Kept in memory by being read: a quarter of the pool.
constexpr size_t kHotPrompts = 16;
// The writer waits while more than this is to be written: the disk sets the pace, and always has
// something to do.
constexpr uint64_t kBacklogBlocks = 48;
constexpr absl::Duration kBackOff = absl::Milliseconds(1);
constexpr absl::Duration kSettleMax = absl::Seconds(60);

// Blocks of 2 MiB in 32 segments.
Namespace BenchNamespace() {
  const Group group = {.kind = GroupKind::kFull,
                       .required = 1,
                       .layers = 32,
                       .kv_heads = 8,
                       .key_dim = 128,
                       .value_dim = 128,
                       .dtype = Dtype::kBfloat16};
  return {
      .model = "pressure",
      .revision = "sha256:00",
      .numerics = "",
      .key_scheme = KeyScheme::kCairn,
      .layout = {.version = kLayoutVersion, .block_tokens = 16, .slices = 1, .groups = {group}}};
}

NodeConfig ConfigOver(const std::string& dir) {
  NodeConfig config;
  config.listen = {"127.0.0.1:0"};
  config.security.insecure = true;
  config.metrics_listen.clear();
  config.node_id = "pressure";
  config.host_memory = kPool;
  config.disk.dir = dir;
  config.disk.bytes = kDisk;
  return config;
}

void Pause(absl::Duration duration) {
  const WakeEvent never;
  never.WaitFor(duration);
}

struct Latencies {
  LatencyRecorder lookups;
  LatencyRecorder gets;
  LatencyRecorder store_lookups;  // Without the connection: what the store's lock does.
};

class Reader {
 public:
  Reader(CacheNodeClient* client, node::BlockStore* store, NamespaceHandle name_space,
         std::vector<Prompt> prompts)
      : client_(client),
        store_(store),
        name_space_(std::move(name_space)),
        prompts_(std::move(prompts)),
        bytes_(name_space_.block_bytes()) {}

  // Reads hot blocks for one round.
  absl::Status Run(Latencies* latencies) {
    const absl::Time end = clock_.SteadyNow() + kRound;
    for (absl::Time next = clock_.SteadyNow(); next < end; next += kInterval) {
      Pause(next - clock_.SteadyNow());
      const Prompt& prompt = prompts_[turn_ % prompts_.size()];
      LookupInStore(prompt, &latencies->store_lookups);
      absl::Status status = Lookup(prompt, &latencies->lookups);
      if (status.ok() && turn_ % 2 == 0) status = Get(prompt, &latencies->gets);
      if (!status.ok()) return status;
      ++turn_;
    }
    return absl::OkStatus();
  }

 private:
  void LookupInStore(const Prompt& prompt, LatencyRecorder* latencies) {
    node::LookupQuery query;
    query.prompts.push_back({.keys = prompt.keys()});
    query.touch = true;
    const absl::Time began = clock_.SteadyNow();
    store_->Lookup(node::kPublicTenant, name_space_.fingerprint(), query);
    latencies->Record(clock_.SteadyNow() - began);
  }

  absl::Status Lookup(const Prompt& prompt, LatencyRecorder* latencies) {
    const absl::Time began = clock_.SteadyNow();
    const absl::StatusOr<LookupAnswer> answer =
        client_->Lookup(name_space_, {&prompt, 1}, {.touch = true});
    latencies->Record(clock_.SteadyNow() - began);
    if (!answer.ok()) return answer.status();
    const auto& runs = answer->prompts[0].runs;
    if (runs.size() == 1 && runs[0].state == v1::BLOCK_STATE_HOST) return absl::OkStatus();
    return absl::InternalError("a block that is read all the time has left host memory");
  }

  absl::Status Get(const Prompt& prompt, LatencyRecorder* latencies) {
    const ContiguousBlocks place(&name_space_.payload_map(), absl::MakeSpan(bytes_));
    const BlockKey& key = prompt.keys()[turn_ / 2 % prompt.block_count()];
    const absl::Time began = clock_.SteadyNow();
    const GetResult got = client_->Get(name_space_, {&key, 1}, place);
    latencies->Record(clock_.SteadyNow() - began);
    if (!got.status.ok()) return got.status;
    return got.AllGood() ? absl::OkStatus() : absl::InternalError("a get was not whole");
  }

  CacheNodeClient* const client_;
  node::BlockStore* const store_;
  const NamespaceHandle name_space_;
  const std::vector<Prompt> prompts_;
  SystemClock clock_;
  std::vector<uint8_t> bytes_;
  size_t turn_ = 0;
};

// Writes on a thread of its own while it lives. Of low priority, as the background work is that it
// gives reason to: what is measured is what eviction and spilling do to readers, not how a writer
// and a reader share two processors.
class Pressure {
 public:
  Pressure(node::BlockStore* store, StoreLoad* load)
      : store_(store), load_(load), thread_([this] { Run(); }) {}
  ~Pressure() {
    stopping_.store(true);
    thread_.join();
  }

 private:
  void Run() {
    LowerThisThread();
    while (!stopping_.load()) {
      const bool wait = store_->Status().spill_queue_blocks > kBacklogBlocks;
      if (wait || !load_->PutPrompt().ok()) Pause(kBackOff);
    }
  }

  node::BlockStore* const store_;
  StoreLoad* const load_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Until nothing is written to disk any more.
absl::Status AwaitQuiet(node::BlockStore* store) {
  const SystemClock clock;
  const absl::Time deadline = clock.SteadyNow() + kSettleMax;
  uint64_t before = 0;
  while (clock.SteadyNow() < deadline) {
    Pause(absl::Milliseconds(500));
    const node::StoreStatus status = store->Status();
    if (status.spill_queue_blocks == 0 && status.pins == 0 && status.disk_files == before) {
      return absl::OkStatus();
    }
    before = status.disk_files;
  }
  return absl::DeadlineExceededError("the node does not come to rest");
}

double Median(std::vector<double> values) {
  CAIRN_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double Milliseconds(const LatencyRecorder& latencies, double quantile) {
  return absl::ToDoubleMilliseconds(latencies.Quantile(quantile));
}

// Medians over the rounds, idle and under pressure, and their ratio.
void Report(absl::string_view what, const std::vector<Latencies>& idle,
            const std::vector<Latencies>& pressed, LatencyRecorder Latencies::*of,
            JsonReport* report) {
  const auto median = [of](const std::vector<Latencies>& rounds, double quantile) {
    std::vector<double> values;
    for (const Latencies& round : rounds) values.push_back(Milliseconds(round.*of, quantile));
    return Median(std::move(values));
  };
  const double floor = median(idle, 0.99);
  const double product = median(pressed, 0.99);
  report->Add(absl::StrCat(what, "_idle_p50_ms"), median(idle, 0.5));
  report->Add(absl::StrCat(what, "_idle_p99_ms"), floor);
  report->Add(absl::StrCat(what, "_pressure_p50_ms"), median(pressed, 0.5));
  report->Add(absl::StrCat(what, "_pressure_p99_ms"), product);
  report->Add(absl::StrCat(what, "_p99_ratio"), product / floor);
}

struct Done {
  uint64_t spilled_bytes = 0;
  uint64_t evicted_blocks = 0;
  uint64_t reclaimed_files = 0;
};

Done DoneBy(const Node& node) {
  const node::StoreCounters& counters = node.counters();
  return {.spilled_bytes = counters.spilled_bytes.load(),
          .evicted_blocks = counters.evicted_blocks.load() + counters.demoted_blocks.load(),
          .reclaimed_files = counters.reclaimed_files.load()};
}

absl::Status Measure(Node* node, Reader* reader, StoreLoad* load, JsonReport* report) {
  std::vector<Latencies> idle(kRounds);
  std::vector<Latencies> pressed(kRounds);
  const Done before = DoneBy(*node);
  for (int round = 0; round < kRounds; ++round) {
    if (absl::Status status = AwaitQuiet(&node->store()); !status.ok()) return status;
    if (absl::Status status = reader->Run(&idle[round]); !status.ok()) return status;
    const Pressure pressure(&node->store(), load);
    if (absl::Status status = reader->Run(&pressed[round]); !status.ok()) return status;
  }
  const Done after = DoneBy(*node);
  const double seconds = kRounds * absl::ToDoubleSeconds(kRound);
  if (after.spilled_bytes == before.spilled_bytes ||
      after.evicted_blocks == before.evicted_blocks) {
    return absl::InternalError("nothing was spilled or evicted");
  }
  report->Add("rounds", kRounds);
  report->Add("spilled_bytes_per_second",
              static_cast<double>(after.spilled_bytes - before.spilled_bytes) / seconds);
  report->Add("evicted_blocks_per_second",
              static_cast<double>(after.evicted_blocks - before.evicted_blocks) / seconds);
  report->Add("reclaimed_files",
              static_cast<double>(after.reclaimed_files - before.reclaimed_files));
  Report("lookup", idle, pressed, &Latencies::lookups, report);
  Report("store_lookup", idle, pressed, &Latencies::store_lookups, report);
  Report("get", idle, pressed, &Latencies::gets, report);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPressureSuite(const SuiteOptions& options, JsonReport* report) {
  TuneAllocator();  // Both as the node's program does.
  TakeShortTurns();
  std::error_code error;
  const std::filesystem::path parent = options.dir.empty()
                                           ? std::filesystem::temp_directory_path(error)
                                           : std::filesystem::path(options.dir);
  const std::string dir = (parent / absl::StrCat("cairn-bench-pressure-", getpid())).string();
  const absl::Cleanup remove = [&dir] {
    std::error_code ignored;
    std::filesystem::remove_all(dir, ignored);
  };
  const absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(ConfigOver(dir));
  if (!node.ok()) return node.status();
  SystemClientParts parts;
  ClientOptions client_options;
  client_options.target = (*node)->addresses().front();
  CacheNodeClient client(client_options, parts.parts());
  const absl::StatusOr<NamespaceHandle> name_space =
      client.RegisterNamespace("pressure", BenchNamespace());
  if (!name_space.ok()) return name_space.status();
  StoreLoad load(&(*node)->store(), name_space->fingerprint());
  std::vector<Prompt> hot;
  while (hot.size() < kHotPrompts) {
    const absl::StatusOr<std::vector<BlockKey>> keys = load.PutPrompt();
    if (!keys.ok()) return keys.status();
    hot.push_back(Prompt::FromKeys(*keys));
  }
  Reader reader(&client, &(*node)->store(), *name_space, std::move(hot));
  // So that the pool is full, and connections and caches are warm.
  {
    Latencies warm;
    const Pressure pressure(&(*node)->store(), &load);
    if (absl::Status status = reader.Run(&warm); !status.ok()) return status;
  }
  return Measure(node->get(), &reader, &load, report);
}

}  // namespace cairn::bench
