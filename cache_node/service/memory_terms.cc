#include "cache_node/service/memory_terms.h"

#include "cache_node/service/disk_opening.h"
#include "cache_node/service/node_config.h"
#include "cache_node/store/feed_hub.h"
#include "cache_node/store/removed_ring.h"
#include "common/server/allocator.h"

namespace cairn::node {
namespace {

ByteSize Times(int64_t count, ByteSize each) {
  return ByteSize(static_cast<uint64_t>(count) * each.bytes());
}

ByteSize LeaseLinkBytes(const NodeConfig& config) {
  const uint64_t leased = config.leased_memory.bytes() != 0 ? config.leased_memory.bytes()
                                                            : config.host_memory.bytes() / 2;
  return ByteSize(leased / kLeasedBlockBytes.bytes() * kLeaseLinkBytes.bytes());
}

}  // namespace

std::vector<MemoryTerm> MemoryTermsOf(const NodeConfig& config) {
  std::vector<MemoryTerm> terms = {
      {"host pool", config.host_memory, "host-memory"},
      {"index", config.index_memory, "index-memory"},
      {"namespaces", config.namespace_memory, "namespace-memory"},
      {"payload in flight", config.in_flight_bytes, "in-flight-bytes"},
      {"connections", Times(config.connections_max, kConnectionBytes), "connections-max"},
      {"feed queues",
       Times(int64_t{FeedHub::kWatchersMax} * config.feed_queue_records,
             ByteSize(FeedHub::kBytesPerRecord)),
       "feed-queue-records"},
      {"removed keys", Times(config.removed_remembered, ByteSize(RemovedRing::kBytesPerEntry)),
       "removed-remembered"},
      {"links of leases", LeaseLinkBytes(config), "leased-memory"},
      {"answers remembered", config.request_memory, "request-memory"},
      {"calls waiting", kWaitingCallBytes, ""},
      {"allocator's reserve", AllocatorRetainedMax(), ""},
      {"base", kBaseBytes, ""},
  };
  if (config.decode.on()) {
    terms.push_back({"decode in flight", config.decode.in_flight, "decode-in-flight-bytes"});
    terms.push_back({"decode streams", config.decode.StreamMemory(), "decode-streams-max"});
    terms.push_back({"decode kernels", config.decode.EngineMemory(), "decode-threads"});
  }
  if (config.decode.memory.bytes() > 0) {
    terms.push_back({"decode sequences", config.decode.memory, "decode-memory"});
    terms.push_back({"decode books", config.decode.BookMemory(), "decode-memory"});
  }
  if (config.local.on()) {
    terms.push_back({"local connections",
                     Times(config.local.connections_max, LocalConfig::kConnectionBytes),
                     "local-connections-max"});
    terms.push_back({"local staging", config.local.staging_memory, "local-staging-memory"});
    terms.push_back(
        {"local generations", LocalConfig::GenerationBytes(config.host_memory), "host-memory"});
  }
  if (config.pull.on()) {
    terms.push_back(
        {"pulls", Times(config.pull.threads, PullConfig::kBytesPerThread), "pull-threads"});
  }
  if (config.device.on()) {
    terms.push_back({"device index", config.device.index_memory, "device-index-memory"});
  }
  if (config.device.emulated()) {
    terms.push_back({"emulated device", config.device.bytes, "device-bytes"});
  }
  if (!config.disk.on()) return terms;
  terms.push_back({"disk index", config.disk.index_memory, "disk-index-memory"});
  terms.push_back({"disk tier", DiskTierMemory(config.disk), "spill-block-bytes"});
  return terms;
}

ByteSize TransportBytesOf(const NodeConfig& config) {
  return ByteSize(config.in_flight_bytes.bytes() +
                  Times(config.connections_max, kConnectionBytes).bytes());
}

}  // namespace cairn::node
