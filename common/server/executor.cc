#include "common/server/executor.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/server/thread_name.h"

namespace cairn {
namespace {

// On Linux niceness is a thread's own. Best effort: raising it needs no right.
void LowerPriority(int nice) {
  if (nice <= 0) return;
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + nice);
}

}  // namespace

Executor::Executor(Options options) : options_(std::move(options)) {
  CAIRN_CHECK(options_.threads > 0);
  for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Run(); });
}

Executor::~Executor() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(queue_.empty());
}

absl::Status Executor::Submit(Task task, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError(absl::StrCat(options_.name, " is shutting down"));
  // A thread that runs nothing takes a task from the queue at once: that one does not wait.
  const int idle = options_.threads - running_;
  if (queue_.size() >= options_.queue_max + static_cast<size_t>(idle)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue of ", options_.name, " is full: ", options_.queue_max, " waiting"));
  }
  if (bytes > options_.queue_bytes_max - queued_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue of ", options_.name,
                                                     " is full: ", queued_bytes_, " bytes of ",
                                                     options_.queue_bytes_max, " waiting"));
  }
  queued_bytes_ += bytes;
  queue_.push_back({std::move(task), bytes});
  return absl::OkStatus();
}

size_t Executor::queued() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

void Executor::Run() {
  NameThisThread(options_.name);
  LowerPriority(options_.nice);
  bool ran = false;
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      if (ran) --running_;
      mutex_.Await(absl::Condition(this, &Executor::HasWork));
      if (queue_.empty()) return;
      task = std::move(queue_.front().task);
      CAIRN_CHECK(queued_bytes_ >= queue_.front().bytes);
      queued_bytes_ -= queue_.front().bytes;
      queue_.pop_front();
      ++running_;
      CAIRN_CHECK(running_ <= options_.threads);
    }
    std::move(task)();
    ran = true;
  }
}

}  // namespace cairn
