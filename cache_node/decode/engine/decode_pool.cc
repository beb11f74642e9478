#include "cache_node/decode/engine/decode_pool.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/server/thread_name.h"

namespace cairn::node {
namespace {

constexpr int kLooksPerTime = 32;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

DecodePool::DecodePool(uint32_t workers, absl::Duration spin)
    : spin_(absl::ToChronoNanoseconds(spin)) {
  CAIRN_CHECK(workers >= 1);
  for (uint32_t i = 1; i < workers; ++i) {
    threads_.emplace_back([this, i] {
      NameThisThread(absl::StrCat("decode-", i));
      Work();
    });
  }
}

DecodePool::~DecodePool() {
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(next_.index == count_ && running_ == 0);
    stopping_ = true;
    work_.SignalAll();
  }
  runs_.fetch_add(1);
  for (std::thread& thread : threads_) thread.join();
}

void DecodePool::Run(uint32_t count, void (*task)(void* context, uint32_t index), void* context) {
  if (count == 1 || threads_.empty()) {
    for (uint32_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    CAIRN_CHECK(next_.index == count_ && running_ == 0);
    next_ = {task, context, 0};
    count_ = count;
    work_.SignalAll();
  }
  runs_.fetch_add(1, std::memory_order_release);
  uint64_t ended = ended_.load(std::memory_order_acquire);
  for (Task mine; Take(&mine);) {
    mine.task(mine.context, mine.index);
    EndTask();
  }
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (running_ == 0) return;
      ended = ended_.load(std::memory_order_acquire);
    }
    if (SpinWhile(ended_, ended)) continue;
    absl::MutexLock lock(&mutex_);
    while (running_ > 0) done_.Wait(&mutex_);
    return;
  }
}

bool DecodePool::Take(Task* task) {
  absl::MutexLock lock(&mutex_);
  if (next_.index == count_) return false;
  *task = next_;
  ++next_.index;
  ++running_;
  return true;
}

void DecodePool::EndTask() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(running_ > 0);
  ended_.fetch_add(1, std::memory_order_release);
  if (--running_ == 0 && next_.index == count_) done_.Signal();
}

bool DecodePool::SpinWhile(const std::atomic<uint64_t>& value, uint64_t same) const {
  if (spin_.count() == 0) return value.load(std::memory_order_acquire) != same;
  const auto end = std::chrono::steady_clock::now() + spin_;
  do {
    for (int i = 0; i < kLooksPerTime; ++i) {
      if (value.load(std::memory_order_acquire) != same) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void DecodePool::Work() {
  while (true) {
    const uint64_t seen = runs_.load(std::memory_order_acquire);
    for (Task mine; Take(&mine);) {
      mine.task(mine.context, mine.index);
      EndTask();
    }
    if (SpinWhile(runs_, seen)) continue;
    absl::MutexLock lock(&mutex_);
    while (!stopping_ && next_.index == count_) work_.Wait(&mutex_);
    if (stopping_) return;
  }
}

}  // namespace cairn::node
