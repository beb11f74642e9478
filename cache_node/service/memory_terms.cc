#include "cache_node/service/memory_terms.h"

#include "cache_node/service/node_config.h"
#include "cache_node/store/feed_hub.h"
#include "common/server/allocator.h"

namespace cairn::node {
namespace {

ByteSize Times(int64_t count, ByteSize each) {
  return ByteSize(static_cast<uint64_t>(count) * each.bytes());
}

}  // namespace

std::vector<MemoryTerm> MemoryTermsOf(const NodeConfig& config) {
  return {
      {"host pool", config.host_memory, "host-memory"},
      {"index", config.index_memory, "index-memory"},
      {"payload in flight", config.in_flight_bytes, "in-flight-bytes"},
      {"connections", Times(config.connections_max, kConnectionBytes), "connections-max"},
      {"feed queues",
       Times(int64_t{FeedHub::kWatchersMax} * config.feed_queue_records, kFeedRecordBytes),
       "feed-queue-records"},
      {"answers remembered", config.request_memory, "request-memory"},
      {"calls waiting", kWaitingCallBytes, ""},
      {"allocator's reserve", AllocatorRetainedMax(), ""},
      {"base", kBaseBytes, ""},
  };
}

ByteSize TransportBytesOf(const NodeConfig& config) {
  return ByteSize(config.in_flight_bytes.bytes() +
                  Times(config.connections_max, kConnectionBytes).bytes());
}

}  // namespace cairn::node
