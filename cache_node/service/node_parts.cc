// Node: what its parts are given of each other.
#include <cstring>

#include "cache_node/service/node.h"

namespace cairn::node {

BlockStore::Signals Node::StoreSignals() {
  BlockStore::Signals signals;
  signals.settled = [this] { waiter_.Signal(); };
  signals.recalls = [this] { local_.WakeForRecalls(); };
  signals.feed = [this](std::vector<WatcherId> watchers) { waker_.Signal(watchers); };
  if (device_ != nullptr) device_->SetSignals(&signals);
  if (disk_bells_ == nullptr) return signals;
  signals.spills = [this] { disk_bells_->spills().Ring(); };
  signals.loads = [this] { disk_bells_->RingLoads(); };
  return signals;
}

NodePulls::Parts Node::PullParts() {
  return {.node_id = config_.node_id,
          .store = store_.get(),
          .rates = &rates_,
          .public_scope = public_watch_ == nullptr ? nullptr : &public_watch_->scope(),
          .clock = &clock_,
          .hasher = &hasher_,
          .random = &random_,
          .metrics = &metrics_,
          .settled = [this] { waiter_.Signal(); },
          .log = log_};
}

NodeLocal::Parts Node::LocalParts() {
  return {.store = store_.get(),
          .rates = &rates_,
          .callers = &security_->callers(),
          .time = &time_,
          .random = &random_,
          .metrics = &metrics_,
          .log = log_};
}

void Node::MakeDiskThreads() {
  disk_metrics_.emplace(&metrics_, store_.get(), &counters_, disk_.tier);
  // Says in each record which run of a node wrote it.
  uint64_t writer = 0;
  std::memcpy(&writer, facts_.identity().incarnation.view().data(), sizeof(writer));
  DiskThreads::Parts parts;
  parts.tier = disk_.tier;
  parts.store = store_.get();
  parts.bells = disk_bells_.get();
  parts.clock = &clock_;
  parts.spill = config_.disk.SpillOptions(writer);
  parts.reclaim = config_.disk.ReclaimOptions(writer);
  parts.load_seconds = disk_metrics_->load_seconds();
  disk_threads_.emplace(parts);
}

CacheNodeService::Parts Node::ServiceParts() {
  CacheNodeService::Parts parts;
  parts.calls = &calls_;
  parts.pulls = &pulls_.calls();
  parts.store = store_.get();
  parts.callers = &security_->callers();
  parts.rates = &rates_;
  parts.audit = &audit_;
  parts.facts = &facts_;
  parts.metrics = &rpc_metrics_;
  parts.executor = &executor_;
  parts.removals = &removals_;
  parts.waiting = &waiting_;
  parts.waiter = &waiter_;
  parts.clock = &clock_;
  parts.get_pins = &get_pins_;
  parts.get = {
      .slots = &get_slots_,
      .clock = &clock_,
      .stall_max = config_.get_stall,
      .bytes_sent = metrics_.AddCounter("cairn_node_get_bytes_total", "Payload bytes sent by Get."),
      .stalled = metrics_.AddCounter("cairn_node_gets_stalled_total",
                                     "Get calls cut because their reader took nothing.")};
  parts.feed = {.store = store_.get(),
                .router = &router_,
                .messages = &feed_messages_,
                .clock = &clock_,
                .shards = static_cast<uint32_t>(config_.feed_shards),
                .queue_records_max = static_cast<size_t>(config_.feed_queue_records),
                .stall_max = config_.feed_stall};
  return parts;
}

GenericService::Parts Node::GenericParts() {
  GenericService::Parts parts;
  parts.write = {.store = store_.get(),
                 .in_flight = &in_flight_,
                 .bytes_landed = metrics_.AddCounter("cairn_node_write_bytes_total",
                                                     "Payload bytes that Write landed.")};
  parts.callers = &security_->callers();
  parts.facts = &facts_;
  parts.metrics = &rpc_metrics_;
  return parts;
}

NodeDecode::Parts Node::DecodeParts() {
  return {.host_memory = config_.host_memory,
          .seal_public = public_watch_ == nullptr,
          .store = store_.get(),
          .counters = &counters_,
          .time = &time_,
          .random = &random_,
          .hasher = &hasher_,
          .clock = &clock_,
          .calls = &calls_,
          .memory = &request_memory_,
          .waiting = &waiting_,
          .waiter = &waiter_,
          .callers = &security_->callers(),
          .rates = &rates_,
          .facts = &facts_,
          .metrics = &metrics_};
}

}  // namespace cairn::node
