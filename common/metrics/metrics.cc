#include "common/metrics/metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/metrics/callback_collector.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace cairn {
namespace {

constexpr char kNamePrefix[] = "cairn_";
constexpr char kCounterSuffix[] = "_total";

bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::vector<std::string> NamesOf(const MetricLabels& labels) {
  std::vector<std::string> names;
  for (const auto& [name, value] : labels) names.push_back(name);
  return names;
}

template <typename Impl, typename... Args>
Impl* AddTo(prometheus::Family<Impl>& family, const MetricLabels& labels, const Args&... args) {
  CAIRN_CHECK_MSG(!family.Has(labels), absl::StrCat("made twice: ", family.GetName()));
  return &family.Add(labels, args...);
}

template <typename Handle, typename... Args>
std::unique_ptr<MetricSeries<Handle>> MakeSeries(prometheus::Family<typename Handle::Impl>& family,
                                                 absl::string_view label, size_t values_max,
                                                 const Args&... args) {
  auto make = [&family, label = std::string(label), args...](const std::string& value) {
    return Handle(AddTo(family, {{label, value}}, args...));
  };
  return std::make_unique<MetricSeries<Handle>>(values_max, std::move(make));
}

// What prometheus::BuildCounter and its like return differs in type only.
template <typename Builder>
auto& Register(Builder builder, prometheus::Registry& registry, absl::string_view name,
               absl::string_view help) {
  return builder.Name(std::string(name)).Help(std::string(help)).Register(registry);
}

}  // namespace

std::vector<double> ExponentialBuckets(double start, double factor, int count) {
  CAIRN_CHECK(start > 0 && factor > 1 && count > 0);
  std::vector<double> buckets;
  for (double bound = start; count > 0; --count, bound *= factor) buckets.push_back(bound);
  return buckets;
}

std::vector<double> LatencyBucketsSeconds() { return ExponentialBuckets(50e-6, 2, 20); }

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      callbacks_(std::make_shared<CallbackCollector>()) {}

Metrics::~Metrics() = default;

void Metrics::CheckFamily(absl::string_view name, Family family) {
  CAIRN_CHECK_MSG(absl::StartsWith(name, kNamePrefix) && IsName(name), name);
  CAIRN_CHECK_MSG(!family.help.empty(), name);
  CAIRN_CHECK_MSG(absl::EndsWith(name, kCounterSuffix) == (family.type == Type::kCounter), name);
  for (const std::string& label : family.label_names) CAIRN_CHECK_MSG(IsName(label), name);
  absl::MutexLock lock(&mutex_);
  const auto [it, added] = families_.try_emplace(std::string(name), family);
  CAIRN_CHECK_MSG(added || it->second == family,
                  absl::StrCat(name, " was made with another type, help or label set"));
}

Counter Metrics::AddCounter(absl::string_view name, absl::string_view help,
                            const MetricLabels& labels) {
  CheckFamily(name, {Type::kCounter, false, std::string(help), NamesOf(labels)});
  return Counter(AddTo(Register(prometheus::BuildCounter(), *registry_, name, help), labels));
}

Gauge Metrics::AddGauge(absl::string_view name, absl::string_view help,
                        const MetricLabels& labels) {
  CheckFamily(name, {Type::kGauge, false, std::string(help), NamesOf(labels)});
  return Gauge(AddTo(Register(prometheus::BuildGauge(), *registry_, name, help), labels));
}

Histogram Metrics::AddHistogram(absl::string_view name, absl::string_view help,
                                const std::vector<double>& buckets, const MetricLabels& labels) {
  CAIRN_CHECK_MSG(std::is_sorted(buckets.begin(), buckets.end()), name);
  CheckFamily(name, {Type::kHistogram, false, std::string(help), NamesOf(labels)});
  return Histogram(
      AddTo(Register(prometheus::BuildHistogram(), *registry_, name, help), labels, buckets));
}

std::unique_ptr<CounterSeries> Metrics::AddCounterSeries(absl::string_view name,
                                                         absl::string_view help,
                                                         absl::string_view label,
                                                         size_t values_max) {
  CheckFamily(name, {Type::kCounter, false, std::string(help), {std::string(label)}});
  return MakeSeries<Counter>(Register(prometheus::BuildCounter(), *registry_, name, help), label,
                             values_max);
}

std::unique_ptr<GaugeSeries> Metrics::AddGaugeSeries(absl::string_view name, absl::string_view help,
                                                     absl::string_view label, size_t values_max) {
  CheckFamily(name, {Type::kGauge, false, std::string(help), {std::string(label)}});
  return MakeSeries<Gauge>(Register(prometheus::BuildGauge(), *registry_, name, help), label,
                           values_max);
}

std::unique_ptr<HistogramSeries> Metrics::AddHistogramSeries(absl::string_view name,
                                                             absl::string_view help,
                                                             const std::vector<double>& buckets,
                                                             absl::string_view label,
                                                             size_t values_max) {
  CAIRN_CHECK_MSG(std::is_sorted(buckets.begin(), buckets.end()), name);
  CheckFamily(name, {Type::kHistogram, false, std::string(help), {std::string(label)}});
  return MakeSeries<Histogram>(Register(prometheus::BuildHistogram(), *registry_, name, help),
                               label, values_max, buckets);
}

CallbackMetric Metrics::AddCallback(CallbackKind kind, absl::string_view name,
                                    absl::string_view help, std::function<double()> function,
                                    const MetricLabels& labels) {
  const Type type = kind == CallbackKind::kCounter ? Type::kCounter : Type::kGauge;
  CheckFamily(name, {type, true, std::string(help), NamesOf(labels)});
  CallbackEntry::Spec spec{std::string(name), std::string(help), kind, labels, "", 1};
  auto one = [function = std::move(function)] {
    return std::vector<CallbackSample>{{"", function()}};
  };
  return CallbackMetric(callbacks_,
                        std::make_shared<CallbackEntry>(std::move(spec), std::move(one)));
}

CallbackMetric Metrics::AddCallbackSeries(CallbackKind kind, absl::string_view name,
                                          absl::string_view help, absl::string_view label,
                                          size_t values_max,
                                          std::function<std::vector<CallbackSample>()> function) {
  const Type type = kind == CallbackKind::kCounter ? Type::kCounter : Type::kGauge;
  CheckFamily(name, {type, true, std::string(help), {std::string(label)}});
  CallbackEntry::Spec spec{std::string(name),  std::string(help), kind, {},
                           std::string(label), values_max};
  return CallbackMetric(callbacks_,
                        std::make_shared<CallbackEntry>(std::move(spec), std::move(function)));
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : callbacks_->Collect()) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

std::vector<std::weak_ptr<prometheus::Collectable>> Metrics::collectables() const {
  return {registry_, callbacks_};
}

}  // namespace cairn
