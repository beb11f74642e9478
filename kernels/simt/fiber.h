// Fiber: a stack, and where the code on it stopped. FiberStacks: memory for many of them.
//
// A switch saves what the calling convention wants saved and nothing else (6 to 7 ns on x86-64;
// elsewhere, or with CAIRN_SIMT_UCONTEXT, ucontext does it, 25 times slower). Address and thread
// sanitizers are told of each. Fibers of one owner run on one OS thread at a time; they may move to
// another between switches from outside.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && !defined(CAIRN_SIMT_UCONTEXT)
#define CAIRN_SIMT_FIBER_ASSEMBLY 1
#else
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CAIRN_SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CAIRN_SIMT_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define CAIRN_SIMT_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define CAIRN_SIMT_THREAD_SANITIZER 1
#endif

namespace cairn::simt::emulated {

// Not movable once it ran.
class Fiber {
 public:
  Fiber() = default;
  ~Fiber();

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it calls `entry`, which never returns. What ran on the stack is forgotten,
  // no destructor runs.
  void Prepare(std::byte* stack, size_t bytes, void (*entry)());

  // From the code that runs now, as *this, to where `to` stopped. Returns when somebody switches
  // back.
  void SwitchTo(Fiber* to);

  // The first thing that an entry does.
  static void Entered();

 private:
  void Arrived();

#ifdef CAIRN_SIMT_FIBER_ASSEMBLY
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_;
#endif
  // What the sanitizers want to know; of the OS thread's own stack, learned on the way.
  const void* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
#ifdef CAIRN_SIMT_THREAD_SANITIZER
  void* tsan_fiber_ = nullptr;
  bool owns_tsan_fiber_ = false;
#endif
};

// Stacks of one size, each above a page that nobody may touch.
class FiberStacks {
 public:
  FiberStacks(uint32_t count, size_t bytes);
  ~FiberStacks();

  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  uint32_t count() const { return count_; }
  size_t bytes() const { return bytes_; }
  std::byte* At(uint32_t index) const {
    return memory_ + index * (bytes_ + kGuardBytes) + kGuardBytes;
  }

 private:
  static constexpr size_t kGuardBytes = 4 << 10;

  const uint32_t count_;
  const size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace cairn::simt::emulated
