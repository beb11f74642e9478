#include "tests/cluster/staged_replay.h"

#include <utility>

namespace cairn::testing {

StagedReplay::StagedReplay(replay::ReplayOptions options, const replay::ReplayTarget& target,
                           std::vector<replay::TraceRequest> requests)
    : request_count_(requests.size()), trace_(std::move(requests)) {
  options.observe = [this](const WorkOutcome& outcome) { Note(outcome); };
  thread_ = std::thread([this, options, target] {
    replay::ReplayRunner runner(options, target, &wait_, /*progress=*/nullptr);
    report_ = runner.Run(&trace_);
    absl::MutexLock lock(&mutex_);
    over_ = true;
  });
}

StagedReplay::~StagedReplay() {
  trace_.Allow(request_count_);
  if (thread_.joinable()) thread_.join();
}

void StagedReplay::Note(const WorkOutcome& outcome) {
  absl::MutexLock lock(&mutex_);
  outcomes_.push_back(outcome);
}

bool StagedReplay::AwaitDone(size_t count, absl::Duration bound) {
  absl::MutexLock lock(&mutex_);
  const auto done = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return over_ || outcomes_.size() >= count;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&done), bound);
  return outcomes_.size() >= count;
}

size_t StagedReplay::done() const {
  absl::MutexLock lock(&mutex_);
  return outcomes_.size();
}

std::vector<WorkOutcome> StagedReplay::OutcomesSince(size_t from) const {
  absl::MutexLock lock(&mutex_);
  if (from >= outcomes_.size()) return {};
  return {outcomes_.begin() + static_cast<std::ptrdiff_t>(from), outcomes_.end()};
}

double StagedReplay::HitRateSince(size_t from) const {
  uint64_t hit = 0;
  uint64_t asked = 0;
  for (const WorkOutcome& outcome : OutcomesSince(from)) {
    hit += outcome.hit_tokens;
    asked += outcome.prompt_tokens;
  }
  return asked == 0 ? 0 : static_cast<double>(hit) / static_cast<double>(asked);
}

absl::StatusOr<replay::ReplayReport> StagedReplay::Finish() {
  trace_.Allow(request_count_);
  if (thread_.joinable()) thread_.join();
  return report_;
}

}  // namespace cairn::testing
