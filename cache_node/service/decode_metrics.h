// DecodeMetrics: served attention as cairn_decode_* metrics.
//
// Read at scrape through callbacks, which end with this object. Borrows its sources, which must
// outlive it. Made once for a Metrics.
#pragma once

#include <functional>
#include <vector>

#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/service/decode_bytes.h"
#include "cache_node/service/decode_streams.h"
#include "common/metrics/metrics.h"

namespace cairn::node {

class DecodeMetrics {
 public:
  DecodeMetrics(Metrics* metrics, const DecodeEngine* engine, const DecodeStreams* streams,
                const DecodeBytes* bytes);

  static Histogram RoundItems(Metrics* metrics);
  static Histogram RoundSeconds(Metrics* metrics);

 private:
  void Add(Metrics* metrics, CallbackKind kind, absl::string_view name, absl::string_view help,
           std::function<uint64_t()> value);
  void AddRoom(Metrics* metrics, const DecodeEngine* engine);
  void AddEnds(Metrics* metrics, const DecodeEngine* engine);
  void AddSteps(Metrics* metrics, const DecodeEngine* engine);
  void AddSeals(Metrics* metrics, const DecodeEngine* engine);

  std::vector<CallbackMetric> callbacks_;
};

}  // namespace cairn::node
