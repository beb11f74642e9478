#include "tests/bench/index/index_contention.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "router/core/router_core.h"
#include "router/policy/policy_registry.h"
#include "router/policy/prefix_cost_policy.h"
#include "tests/bench/index/index_rig.h"
#include "tests/bench/index/open_loop.h"

namespace cairn::bench {
namespace {

constexpr size_t kHolders = 128;
constexpr uint32_t kShards = 64;
constexpr uint32_t kBlockTokens = 16;
constexpr size_t kFeeds = 4;
constexpr size_t kLookups = 20'000;
constexpr int kLookupCore = 0;
constexpr int kFeedCore = 1;
// Records in a batch of a snapshot, and how many of all feeds' come in a second: three times what
// 128 nodes say at 1,000 new blocks a second each.
constexpr size_t kBatchRecords = 1024;
constexpr double kRecordsPerSecond = 400'000;

class CoreLoad {
 public:
  explicit CoreLoad(const IndexWorkload& workload)
      : workload_(workload), sequences_(kHolders * kShards) {}

  absl::Status Start() {
    router::RouterOptions options;
    for (size_t i = 0; i < kHolders; ++i) {
      options.holder_addresses.push_back(absl::StrCat("10.0.0.", i, ":7070"));
    }
    // Time stands still without a Tick, so that no holder falls silent.
    auto core = router::RouterCore::Make(
        options, std::make_unique<router::PrefixCostPolicy>(router::PrefixCostOptions{}), &clock_,
        &random_);
    if (!core.ok()) return core.status();
    core_ = *std::move(core);
    for (size_t i = 0; i < kHolders; ++i) {
      const auto holder = static_cast<router::HolderIndex>(i);
      Send(holder, BenchHello(holder, kShards));
      Send(holder, BenchNamespace(kBlockTokens));
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        v1::WatchBlocksResponse message = BenchBatch();
        message.mutable_batch()->set_replaces(true);
        SendBatch(holder, shard, &message);
      }
    }
    Replay();
    return absl::OkStatus();
  }

  // Time of each of the first kLookups requests' lookups.
  std::vector<uint32_t> TimeLookups() const {
    std::vector<uint32_t> times;
    const size_t count = workload_.requests().size();
    for (size_t i = 0; i < kLookups; ++i) {
      const absl::Span<const BlockKey> keys =
          workload_.KeysOf(workload_.requests()[i * 7919 % count]);
      const int64_t began = NowNs();
      const router::LookupAnswer answer =
          core_->LookupPrefix(kBenchTenant, BenchFingerprint(), keys);
      times.push_back(static_cast<uint32_t>(NowNs() - began));
      CAIRN_CHECK(answer.namespace_known);
    }
    return times;
  }

  // Snapshots of one holder's shards, again and again at a steady rate until `stop`.
  void Ingest(router::HolderIndex holder, const absl::Notification& stop,
              std::atomic<uint64_t>* records) {
    uint64_t number = uint64_t{1} << 40;
    const double ns_per_batch = 1e9 * kFeeds * kBatchRecords / kRecordsPerSecond;
    auto due = static_cast<double>(NowNs());
    for (uint32_t shard = 0; !stop.HasBeenNotified();
         shard = (shard + 1) % kShards, due += ns_per_batch) {
      v1::WatchBlocksResponse message = BenchBatch();
      message.mutable_batch()->set_replaces(true);
      while (message.batch().tier_masks().size() < kBatchRecords) {
        BlockKey key = KeyOfNumber(number++ * kFeeds + holder);
        key.bytes[0] = static_cast<uint8_t>(key.bytes[0] / kShards * kShards + shard);
        message.mutable_batch()->mutable_keys()->append(key.view().data(), kKeyBytes);
        message.mutable_batch()->mutable_tier_masks()->push_back(static_cast<char>(kBenchTier));
      }
      const auto early_ns = static_cast<int64_t>(due) - NowNs();
      if (stop.WaitForNotificationWithTimeout(absl::Nanoseconds(early_ns))) return;
      SendBatch(holder, shard, &message);
      records->fetch_add(kBatchRecords);
    }
  }

 private:
  void Send(router::HolderIndex holder, const v1::WatchBlocksResponse& message) {
    CAIRN_CHECK_OK(core_->OnFeed(holder, message).status());
  }
  void SendBatch(router::HolderIndex holder, uint32_t shard, v1::WatchBlocksResponse* message) {
    message->mutable_batch()->set_shard(shard);
    message->mutable_batch()->set_sequence(++sequences_[holder * kShards + shard]);
    Send(holder, *message);
  }

  // All that the workload's holders said.
  void Replay() {
    for (const IndexWorkload::Request& request : workload_.requests()) {
      for (const IndexWorkload::Batch& batch : workload_.BatchesOf(request)) {
        v1::WatchBlocksResponse message = BenchBatch();
        for (const BlockKey& key : workload_.KeysOf(batch)) {
          message.mutable_batch()->mutable_keys()->append(key.view().data(), kKeyBytes);
        }
        for (const uint8_t held : workload_.HeldOf(batch)) {
          message.mutable_batch()->mutable_tier_masks()->push_back(
              static_cast<char>(held != 0 ? kBenchTier : 0));
        }
        SendBatch(batch.holder, batch.shard, &message);
      }
    }
  }

  const IndexWorkload& workload_;
  SystemClock clock_;
  SecureRandom random_;
  std::unique_ptr<router::RouterCore> core_;
  std::vector<uint64_t> sequences_;  // By holder and shard.
};

void AddTimes(absl::string_view prefix, const std::vector<uint32_t>& times, JsonReport* report) {
  report->Add(absl::StrCat(prefix, "_p50_us"), PercentileUs(times, 0.5));
  report->Add(absl::StrCat(prefix, "_p99_us"), PercentileUs(times, 0.99));
  report->Add(absl::StrCat(prefix, "_max_us"), PercentileUs(times, 1));
}

}  // namespace

absl::Status AddIndexContention(const IndexWorkload& workload, JsonReport* report) {
  CoreLoad load(workload);
  if (absl::Status status = load.Start(); !status.ok()) return status;
  std::vector<uint32_t> alone;
  std::vector<uint32_t> beside;
  absl::Notification stop;
  std::atomic<uint64_t> records{0};
  double seconds = 0;
  std::thread lookups([&] {
    PinThisThread(kLookupCore);
    load.TimeLookups();
    alone = load.TimeLookups();
    std::vector<std::thread> feeds;
    for (size_t feed = 0; feed < kFeeds; ++feed) {
      feeds.emplace_back([&, feed] {
        PinThisThread(kFeedCore);
        load.Ingest(static_cast<router::HolderIndex>(feed * (kHolders / kFeeds)), stop, &records);
      });
    }
    while (records.load() < kBatchRecords * kFeeds * 2) {
    }
    const uint64_t records_before = records.load();
    const int64_t began = NowNs();
    beside = load.TimeLookups();
    seconds = static_cast<double>(NowNs() - began) / 1e9;
    report->Add("ingested_beside_lookups_per_second",
                static_cast<double>(records.load() - records_before) / seconds);
    stop.Notify();
    for (std::thread& feed : feeds) feed.join();
  });
  lookups.join();
  AddTimes("lookup_alone", alone, report);
  AddTimes("lookup_beside_ingest", beside, report);
  report->Add("lookup_slowdown_under_ingest",
              PercentileUs(beside, 0.99) / PercentileUs(alone, 0.99));
  return absl::OkStatus();
}

}  // namespace cairn::bench
