// MetricSeries: one metric with one label whose values are not known beforehand, such as a tenant.
//
// The first `values_max` values that come get a series each; all later ones share the series whose
// value is "other", so that a caller who invents names cannot grow the process. A
// value keeps its series for the life of the process. Thread-safe. A component owns its
// MetricSeries; the Metrics that made it must outlive it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/metrics/metric_handles.h"

namespace cairn {

// Label value that stands for all values beyond a series' bound.
inline constexpr char kOtherLabelValue[] = "other";
// Longer label values are counted under "other".
inline constexpr size_t kLabelValueBytesMax = 256;

template <typename Handle>
class MetricSeries {
 public:
  // Makes the handle for a label value that has none yet.
  using Make = std::function<Handle(const std::string& value)>;

  MetricSeries(size_t values_max, Make make)
      : values_max_(values_max), make_(std::move(make)), other_(make_(kOtherLabelValue)) {
    CAIRN_CHECK(values_max > 0);
  }

  MetricSeries(const MetricSeries&) = delete;
  MetricSeries& operator=(const MetricSeries&) = delete;

  // The handle for `value`. Costs a look-up: keep the handle where the value is fixed.
  Handle With(absl::string_view value) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (value == kOtherLabelValue || value.size() > kLabelValueBytesMax) return other_;
    {
      absl::ReaderMutexLock lock(&mutex_);
      const auto it = handles_.find(value);
      if (it != handles_.end()) return it->second;
      if (handles_.size() >= values_max_) return other_;
    }
    absl::MutexLock lock(&mutex_);
    const auto it = handles_.find(value);
    if (it != handles_.end()) return it->second;
    if (handles_.size() >= values_max_) return other_;
    std::string key(value);
    const Handle handle = make_(key);
    handles_.emplace(std::move(key), handle);
    CAIRN_CHECK(handles_.size() <= values_max_);
    return handle;
  }

 private:
  const size_t values_max_;
  const Make make_;
  const Handle other_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Handle> handles_ ABSL_GUARDED_BY(mutex_);
};

using CounterSeries = MetricSeries<Counter>;
using GaugeSeries = MetricSeries<Gauge>;
using HistogramSeries = MetricSeries<Histogram>;

}  // namespace cairn
