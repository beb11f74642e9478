// Metrics: where components make their metrics; a constructor argument, one for each process part.
//
// A component asks for its handles once, in its constructor, and records through them (see
// metric_handles.h). Names start with "cairn_" and hold lower case, digits and underscores; those
// of counters, and only those, end in "_total"; help is a sentence. Units are part of the name
// ("_seconds", "_bytes"). Label sets are fixed when a handle is made, or bounded (MetricSeries).
// Breaking these rules, or making the same name and labels twice, is a bug of ours and aborts.
//
// Thread-safe. Nothing is published by itself: MetricsServer serves it, and a test just makes a
// Metrics and, if it cares, reads Text(). Must outlive the handles and the components.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/metrics/callback_metric.h"
#include "common/metrics/metric_handles.h"
#include "common/metrics/metric_series.h"

namespace prometheus {
class Collectable;
class Registry;
}  // namespace prometheus

namespace cairn {

using MetricLabels = std::map<std::string, std::string>;

// `count` upper bounds, the first `start`, each `factor` times the one before.
std::vector<double> ExponentialBuckets(double start, double factor, int count);

// For the time that a call takes: 50 us to 26 s, each bound twice the one before.
std::vector<double> LatencyBucketsSeconds();

class Metrics {
 public:
  Metrics();
  ~Metrics();

  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter AddCounter(absl::string_view name, absl::string_view help,
                     const MetricLabels& labels = {});
  Gauge AddGauge(absl::string_view name, absl::string_view help, const MetricLabels& labels = {});
  // `buckets` are upper bounds, ascending; one for infinity is added.
  Histogram AddHistogram(absl::string_view name, absl::string_view help,
                         const std::vector<double>& buckets, const MetricLabels& labels = {});

  // One series for each of the first `values_max` values of `label`, and "other".
  std::unique_ptr<CounterSeries> AddCounterSeries(absl::string_view name, absl::string_view help,
                                                  absl::string_view label, size_t values_max);
  std::unique_ptr<GaugeSeries> AddGaugeSeries(absl::string_view name, absl::string_view help,
                                              absl::string_view label, size_t values_max);
  std::unique_ptr<HistogramSeries> AddHistogramSeries(absl::string_view name,
                                                      absl::string_view help,
                                                      const std::vector<double>& buckets,
                                                      absl::string_view label, size_t values_max);

  // `function` is called at each scrape, on the scraper's thread, with no lock held. It is quick
  // and does no I/O.
  [[nodiscard]] CallbackMetric AddCallback(CallbackKind kind, absl::string_view name,
                                           absl::string_view help, std::function<double()> function,
                                           const MetricLabels& labels = {});
  // As above with one sample for each value of `label`; those beyond `values_max` are added up
  // under "other".
  [[nodiscard]] CallbackMetric AddCallbackSeries(
      CallbackKind kind, absl::string_view name, absl::string_view help, absl::string_view label,
      size_t values_max, std::function<std::vector<CallbackSample>()> function);

  // Everything in the Prometheus text format, as a scrape gets it.
  std::string Text() const;

  // For an exposer, which keeps weak pointers: an object that goes is no longer served.
  std::vector<std::weak_ptr<prometheus::Collectable>> collectables() const;

 private:
  enum class Type { kCounter, kGauge, kHistogram };
  // What all metrics of one name have in common.
  struct Family {
    Type type;
    bool callback;
    std::string help;
    std::vector<std::string> label_names;

    bool operator==(const Family& other) const = default;
  };

  // Checks the rules above for one more metric under `name`.
  void CheckFamily(absl::string_view name, Family family) ABSL_LOCKS_EXCLUDED(mutex_);

  // Shared with exposers through weak pointers.
  const std::shared_ptr<prometheus::Registry> registry_;
  const std::shared_ptr<CallbackCollector> callbacks_;
  absl::Mutex mutex_;
  std::map<std::string, Family, std::less<>> families_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace cairn
