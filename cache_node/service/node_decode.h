// NodeDecode: a node's served attention, with all that it needs: memory for sequences, the engine
// and its threads, the thread that publishes full blocks, the service, its metrics.
//
// Made when the store and what calls of it need are there; serves until Stop, which comes after the
// server's end and before the store's. Thread-safe but for Stop.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/decode/engine/decode_pool.h"
#include "cache_node/decode/sequence/sequence_sealer.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "cache_node/service/decode_bytes.h"
#include "cache_node/service/decode_calls.h"
#include "cache_node/service/decode_config.h"
#include "cache_node/service/decode_metrics.h"
#include "cache_node/service/decode_rpc_metrics.h"
#include "cache_node/service/decode_service.h"
#include "cache_node/service/decode_streams.h"
#include "cache_node/service/work_bell.h"
#include "cairn/v1/feed.pb.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class NodeDecode {
 public:
  struct Parts {
    ByteSize host_memory;
    bool seal_public = false;  // The tenant public is one like others.
    BlockStore* store = nullptr;
    const StoreCounters* counters = nullptr;
    const GuardedTime* time = nullptr;
    RandomSource* random = nullptr;
    const BlockHasher* hasher = nullptr;
    const Clock* clock = nullptr;
    NodeCalls* calls = nullptr;
    RequestMemory* memory = nullptr;
    WaitingCalls* waiting = nullptr;
    SettledWaiter* waiter = nullptr;
    const CallerResolver* callers = nullptr;
    TenantRates* rates = nullptr;
    const NodeFacts* facts = nullptr;
    Metrics* metrics = nullptr;
  };

  NodeDecode(const DecodeConfig& config, const Parts& parts);
  ~NodeDecode();

  NodeDecode(const NodeDecode&) = delete;
  NodeDecode& operator=(const NodeDecode&) = delete;

  grpc::Service* service() { return &service_; }
  void FillReport(v1::DecodeReport* report) const;

  void Tick();
  // No sequence runs, and nothing waits.
  bool IsIdle() const;
  // Ends the streams: for a drain whose grace is over.
  void EndStreams(const absl::Status& status) { streams_.EndAll(status); }
  // Ends all sequences and the threads. Calls may be made no more.
  void Stop();

 private:
  static constexpr size_t kSealsTaken = 4;

  static SequenceTable::Options TableOptions(const DecodeConfig& config, const Parts& parts);
  DecodeCalls::Parts CallParts(const DecodeConfig& config) const;
  DecodeService::Parts ServiceParts(const DecodeConfig& config);
  void Seal();
  // Seals what waits. False: there was nothing.
  bool SealSome(SequenceSealer& sealer);
  // On the engine, and waits for it. False: it has no room now.
  bool RunOnEngine(absl::AnyInvocable<void(SequenceTable&)> job);

  const Parts parts_;
  SequenceTable table_;
  DecodePool pool_;
  WorkBell seals_;
  DecodeEngine engine_;
  DecodeStreams streams_;
  DecodeBytes bytes_;
  DecodeRpcMetrics rpc_metrics_;
  DecodeMetrics metrics_;
  DecodeCalls calls_;
  DecodeService service_;
  std::atomic<bool> stopping_{false};
  std::thread sealer_;  // Last: it uses all of the above.
};

}  // namespace cairn::node
