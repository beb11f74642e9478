// Counter, Gauge, Histogram: what a component holds to record one metric.
//
// A handle is a pointer, copied freely, and valid as long as the Metrics that gave it. One that is
// default-constructed records nothing. Thread-safe: counters and gauges are one atomic each, a
// histogram takes a short lock of its own.
#pragma once

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace cairn {

class Counter {
 public:
  using Impl = prometheus::Counter;

  Counter() = default;
  explicit Counter(Impl* impl) : impl_(impl) {}

  // `by` is not negative; a negative one is ignored.
  void Increment(double by = 1) const {
    if (impl_ != nullptr) impl_->Increment(by);
  }
  double Value() const { return impl_ == nullptr ? 0 : impl_->Value(); }

 private:
  Impl* impl_ = nullptr;
};

class Gauge {
 public:
  using Impl = prometheus::Gauge;

  Gauge() = default;
  explicit Gauge(Impl* impl) : impl_(impl) {}

  void Set(double value) const {
    if (impl_ != nullptr) impl_->Set(value);
  }
  void Add(double by) const {
    if (impl_ != nullptr) impl_->Increment(by);
  }
  double Value() const { return impl_ == nullptr ? 0 : impl_->Value(); }

 private:
  Impl* impl_ = nullptr;
};

class Histogram {
 public:
  using Impl = prometheus::Histogram;

  Histogram() = default;
  explicit Histogram(Impl* impl) : impl_(impl) {}

  void Observe(double value) const {
    if (impl_ != nullptr) impl_->Observe(value);
  }

 private:
  Impl* impl_ = nullptr;
};

}  // namespace cairn
