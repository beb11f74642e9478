#include "common/metrics/callback_collector.h"

#include <algorithm>
#include <optional>

#include "common/base/check.h"
#include "common/metrics/metric_series.h"

namespace cairn {
namespace {

// Adds up what is beyond `values_max` under "other".
std::vector<CallbackSample> Bounded(std::vector<CallbackSample> samples, size_t values_max) {
  if (samples.size() <= values_max) return samples;
  CallbackSample other{kOtherLabelValue, 0};
  for (size_t i = values_max; i < samples.size(); ++i) other.value += samples[i].value;
  samples.resize(values_max);
  samples.push_back(std::move(other));
  return samples;
}

prometheus::ClientMetric ToClientMetric(const CallbackEntry::Spec& spec, CallbackSample sample) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : spec.labels) metric.label.push_back({name, value});
  if (!spec.series_label.empty()) {
    metric.label.push_back({spec.series_label, std::move(sample.label_value)});
  }
  if (spec.kind == CallbackKind::kCounter) {
    metric.counter.value = sample.value;
  } else {
    metric.gauge.value = sample.value;
  }
  return metric;
}

prometheus::MetricFamily ToFamily(const CallbackEntry::Spec& spec) {
  prometheus::MetricFamily family;
  family.name = spec.name;
  family.help = spec.help;
  family.type = spec.kind == CallbackKind::kCounter ? prometheus::MetricType::Counter
                                                    : prometheus::MetricType::Gauge;
  return family;
}

}  // namespace

CallbackEntry::CallbackEntry(Spec spec, Function function)
    : spec_(std::move(spec)), function_(std::move(function)) {
  CAIRN_CHECK(function_ != nullptr && spec_.values_max > 0);
}

std::vector<CallbackSample> CallbackEntry::Call() {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return {};
    ++calls_;
  }
  std::vector<CallbackSample> samples = Bounded(function_(), spec_.values_max);
  absl::MutexLock lock(&mutex_);
  --calls_;
  CAIRN_CHECK(calls_ >= 0);
  return samples;
}

void CallbackEntry::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  mutex_.Await(absl::Condition(
      +[](int* calls) { return *calls == 0; }, &calls_));
}

void CallbackCollector::Add(std::shared_ptr<CallbackEntry> entry) {
  absl::MutexLock lock(&mutex_);
  for (const auto& other : entries_) {
    CAIRN_CHECK_MSG(
        other->spec().name != entry->spec().name || other->spec().labels != entry->spec().labels,
        entry->spec().name);
  }
  entries_.push_back(std::move(entry));
}

void CallbackCollector::Remove(const CallbackEntry* entry) {
  absl::MutexLock lock(&mutex_);
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [entry](const auto& other) { return other.get() == entry; });
  CAIRN_CHECK(it != entries_.end());
  entries_.erase(it);
}

std::vector<prometheus::MetricFamily> CallbackCollector::Collect() const {
  std::vector<std::shared_ptr<CallbackEntry>> entries;
  {
    absl::MutexLock lock(&mutex_);
    entries = entries_;
  }
  std::map<std::string, prometheus::MetricFamily> families;
  for (const auto& entry : entries) {
    const CallbackEntry::Spec& spec = entry->spec();
    auto& family = families.try_emplace(spec.name, ToFamily(spec)).first->second;
    for (CallbackSample& sample : entry->Call()) {
      family.metric.push_back(ToClientMetric(spec, std::move(sample)));
    }
  }
  std::vector<prometheus::MetricFamily> result;
  for (auto& [name, family] : families) {
    if (!family.metric.empty()) result.push_back(std::move(family));
  }
  return result;
}

}  // namespace cairn
