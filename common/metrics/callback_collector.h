// CallbackCollector: the callbacks of one Metrics, as prometheus-cpp collects them.
//
// Thread-safe. Collect() calls each function without holding any lock, so that a function may take
// its component's; it leaves out functions whose CallbackMetric went meanwhile. Internal to
// common/metrics.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/metrics/callback_metric.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace cairn {

class CallbackEntry {
 public:
  using Function = std::function<std::vector<CallbackSample>()>;

  struct Spec {
    std::string name;
    std::string help;
    CallbackKind kind = CallbackKind::kGauge;
    std::map<std::string, std::string> labels;
    // Label that samples fill; empty for a callback with one value.
    std::string series_label;
    size_t values_max = 1;
  };

  CallbackEntry(Spec spec, Function function);

  const Spec& spec() const { return spec_; }

  // Samples within the bound: the values beyond it are added up under "other". Nothing once closed.
  std::vector<CallbackSample> Call() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns when no call is under way and none will start. Not from within the function itself.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Spec spec_;
  const Function function_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

class CallbackCollector final : public prometheus::Collectable {
 public:
  // The same name with the same labels must not be there already.
  void Add(std::shared_ptr<CallbackEntry> entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const CallbackEntry* entry) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<prometheus::MetricFamily> Collect() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<CallbackEntry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
