#include "tests/bench/datapath/rank_threads.h"

#include <utility>

namespace cairn::bench {

RankThreads::RankThreads(size_t ranks) {
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads_.emplace_back([this, rank] { RunRank(rank); });
  }
}

RankThreads::~RankThreads() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status RankThreads::Run(const std::function<absl::Status(size_t)>& work) {
  absl::MutexLock lock(&mutex_);
  work_ = &work;
  failure_ = absl::OkStatus();
  running_ = threads_.size();
  ++turn_;
  mutex_.Await(absl::Condition(
      +[](size_t* running) { return *running == 0; }, &running_));
  work_ = nullptr;
  return failure_;
}

void RankThreads::RunRank(size_t rank) {
  uint64_t done = 0;
  while (true) {
    const std::function<absl::Status(size_t)>* work = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      const auto called = [this, &done]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ending_ || turn_ != done;
      };
      mutex_.Await(absl::Condition(&called));
      if (ending_) return;
      done = turn_;
      work = work_;
    }
    absl::Status status = (*work)(rank);
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    --running_;
  }
}

}  // namespace cairn::bench
