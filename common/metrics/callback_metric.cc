#include "common/metrics/callback_metric.h"

#include "common/metrics/callback_collector.h"

namespace cairn {

CallbackMetric::CallbackMetric(std::shared_ptr<CallbackCollector> collector,
                               std::shared_ptr<CallbackEntry> entry)
    : collector_(std::move(collector)), entry_(std::move(entry)) {
  collector_->Add(entry_);
}

CallbackMetric::~CallbackMetric() { Remove(); }

CallbackMetric::CallbackMetric(CallbackMetric&& other) noexcept = default;

CallbackMetric& CallbackMetric::operator=(CallbackMetric&& other) noexcept {
  if (this != &other) {
    Remove();
    collector_ = std::move(other.collector_);
    entry_ = std::move(other.entry_);
  }
  return *this;
}

void CallbackMetric::Remove() {
  if (entry_ == nullptr) return;
  collector_->Remove(entry_.get());
  entry_->Close();
  entry_.reset();
  collector_.reset();
}

}  // namespace cairn
