// CallbackMetric: a registered function that a scrape asks for current values.
//
// It is what Metrics::AddCallback returns: the function is called only while this object lives, and
// the destructor waits for a call that is under way. So a component that captures `this` keeps its
// CallbackMetric as its last member. Move-only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/metric_handles.h"

namespace cairn {

enum class CallbackKind { kGauge, kCounter };

// One value of a callback with several; `label_value` fills the label that AddCallbackSeries named.
struct CallbackSample {
  std::string label_value;
  double value = 0;
};

class CallbackCollector;
class CallbackEntry;

class CallbackMetric {
 public:
  CallbackMetric() = default;
  // Both arguments are shared with a scrape that may be under way when this object goes.
  CallbackMetric(std::shared_ptr<CallbackCollector> collector,
                 std::shared_ptr<CallbackEntry> entry);
  ~CallbackMetric();

  CallbackMetric(CallbackMetric&& other) noexcept;
  CallbackMetric& operator=(CallbackMetric&& other) noexcept;

 private:
  void Remove();

  std::shared_ptr<CallbackCollector> collector_;
  std::shared_ptr<CallbackEntry> entry_;
};

}  // namespace cairn
