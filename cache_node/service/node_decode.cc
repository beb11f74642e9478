#include "cache_node/service/node_decode.h"

#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "cache_node/service/decode_messages.h"
#include "common/server/thread_name.h"
#include "common/server/thread_priority.h"

namespace cairn::node {
namespace {

// The sealer that found nothing to do looks again after so long: for what is to be tried again.
constexpr absl::Duration kIdle = absl::Milliseconds(200);
// And when the engine has no room for its question.
constexpr absl::Duration kBusy = absl::Milliseconds(2);

}  // namespace

NodeDecode::NodeDecode(const DecodeConfig& config, const Parts& parts)
    : parts_(parts),
      table_(TableOptions(config, parts), parts.store, parts.counters, parts.time, parts.random,
             parts.hasher),
      pool_(config.ThreadCount(), config.Spin()),
      engine_({.spin = config.Spin()},
              {.sequences = &table_,
               .store = parts.store,
               .counters = parts.counters,
               .clock = parts.clock,
               .pool = &pool_,
               .seals = [this] { seals_.Ring(); },
               .round_items = DecodeMetrics::RoundItems(parts.metrics),
               .round_seconds = DecodeMetrics::RoundSeconds(parts.metrics)}),
      streams_(static_cast<size_t>(config.StreamsMax())),
      bytes_(config.in_flight.bytes()),
      rpc_metrics_(parts.metrics, parts.clock),
      metrics_(parts.metrics, &engine_, &streams_, &bytes_),
      calls_(CallParts(config)),
      service_(ServiceParts(config)),
      sealer_([this] { Seal(); }) {}

NodeDecode::~NodeDecode() { Stop(); }

SequenceTable::Options NodeDecode::TableOptions(const DecodeConfig& config, const Parts& parts) {
  SequenceTable::Options options = config.TableOptions(parts.host_memory);
  options.seal_public = parts.seal_public;
  return options;
}

DecodeCalls::Parts NodeDecode::CallParts(const DecodeConfig& config) const {
  return {.store = parts_.store,
          .calls = parts_.calls,
          .memory = parts_.memory,
          .hasher = parts_.hasher,
          .facts = parts_.facts,
          .serves = config.on(),
          .has_sequences = config.memory.bytes() > 0};
}

DecodeService::Parts NodeDecode::ServiceParts(const DecodeConfig& config) {
  DecodeService::Parts parts;
  parts.calls = &calls_;
  parts.engine = &engine_;
  parts.store = parts_.store;
  parts.callers = parts_.callers;
  parts.rates = parts_.rates;
  parts.facts = parts_.facts;
  parts.metrics = &rpc_metrics_;
  parts.open = {.calls = &calls_,
                .engine = &engine_,
                .waiting = parts_.waiting,
                .waiter = parts_.waiter,
                .clock = parts_.clock};
  parts.attend = {.engine = &engine_, .bytes = &bytes_};
  parts.stream = {.store = parts_.store,
                  .engine = &engine_,
                  .streams = &streams_,
                  .bytes = &bytes_,
                  .clock = parts_.clock,
                  .stall_max = config.stall};
  return parts;
}

void NodeDecode::FillReport(v1::DecodeReport* report) const {
  ToMessage(engine_.numbers(), engine_.counts().waiting, report);
}

void NodeDecode::Tick() {
  engine_.Tick();
  streams_.Tick();
}

bool NodeDecode::IsIdle() const {
  return engine_.numbers().running == 0 && engine_.counts().waiting == 0;
}

void NodeDecode::Stop() {
  if (!sealer_.joinable()) return;
  stopping_.store(true);
  seals_.Ring();
  sealer_.join();
  while (!RunOnEngine([](SequenceTable& sequences) { sequences.CloseAll(); })) {
    seals_.WaitFor(kBusy);
  }
  engine_.Stop();
}

void NodeDecode::Seal() {
  NameThisThread("decode-seal");
  LowerThisThread();
  SequenceSealer sealer(parts_.store, parts_.hasher, parts_.clock);
  while (!stopping_.load()) {
    while (!stopping_.load() && SealSome(sealer)) {
    }
    if (!stopping_.load()) seals_.WaitFor(kIdle);
  }
}

bool NodeDecode::SealSome(SequenceSealer& sealer) {
  std::vector<SealTask> tasks;
  RunOnEngine([&](SequenceTable& sequences) { tasks = sequences.TakeSeals(kSealsTaken); });
  for (const SealTask& task : tasks) {
    const SealOutcome outcome = sealer.Seal(task);
    // What was taken must be given back, however busy the engine is.
    while (!RunOnEngine(
        [&](SequenceTable& sequences) { sequences.FinishSeal(task.serial, outcome); })) {
      seals_.WaitFor(kBusy);
    }
  }
  return !tasks.empty();
}

bool NodeDecode::RunOnEngine(absl::AnyInvocable<void(SequenceTable&)> job) {
  absl::Notification done;
  DecodeEngine::Job wrapped = [&](SequenceTable& sequences) {
    job(sequences);
    done.Notify();
  };
  if (!engine_.Run(wrapped).ok()) return false;
  done.WaitForNotification();
  return true;
}

}  // namespace cairn::node
