#include "kernels/simt/fiber.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CAIRN_SIMT_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

#ifdef CAIRN_SIMT_FIBER_ASSEMBLY
// void cairn_simt_switch(void** save_here, void* continue_there)
asm(R"(
.text
.globl cairn_simt_switch
.hidden cairn_simt_switch
.type cairn_simt_switch, @function
.p2align 4
cairn_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cairn_simt_switch, .-cairn_simt_switch
)");
extern "C" void cairn_simt_switch(void** save_here, void* continue_there);
#endif

namespace cairn::simt::emulated {
namespace {

#if defined(CAIRN_SIMT_ADDRESS_SANITIZER)
// Who switched last on this OS thread: a fiber that arrives learns by it which stack it came from.
thread_local Fiber* last_from = nullptr;
#endif

}  // namespace

Fiber::~Fiber() {
#ifdef CAIRN_SIMT_THREAD_SANITIZER
  if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
#endif
}

void Fiber::Prepare(std::byte* stack, size_t bytes, void (*entry)()) {
  stack_ = stack;
  stack_bytes_ = bytes;
  fake_stack_ = nullptr;
#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack, bytes);
#endif
#ifdef CAIRN_SIMT_THREAD_SANITIZER
  if (owns_tsan_fiber_) __tsan_destroy_fiber(tsan_fiber_);
  tsan_fiber_ = __tsan_create_fiber(0);
  owns_tsan_fiber_ = true;
#endif
#ifdef CAIRN_SIMT_FIBER_ASSEMBLY
  // Six registers to pop, the entry to return to, and a zero where its caller's address would be:
  // at the entry the stack pointer is what it is after a call, 8 below a multiple of 16.
  constexpr uint32_t kRegisters = 6;
  auto* words = reinterpret_cast<uint64_t*>(stack + bytes) - (kRegisters + 2);
  for (uint32_t i = 0; i < kRegisters; ++i) words[i] = 0;
  words[kRegisters] = reinterpret_cast<uint64_t>(entry);
  words[kRegisters + 1] = 0;
  stack_pointer_ = words;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, entry, 0);
#endif
}

void Fiber::SwitchTo(Fiber* to) {
#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
  last_from = this;
  __sanitizer_start_switch_fiber(&fake_stack_, to->stack_, to->stack_bytes_);
#endif
#ifdef CAIRN_SIMT_THREAD_SANITIZER
  if (!owns_tsan_fiber_) tsan_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to->tsan_fiber_, 0);
#endif
#ifdef CAIRN_SIMT_FIBER_ASSEMBLY
  cairn_simt_switch(&stack_pointer_, to->stack_pointer_);
#else
  swapcontext(&context_, &to->context_);
#endif
  Arrived();
}

void Fiber::Arrived() {
#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack_, &last_from->stack_, &last_from->stack_bytes_);
#endif
}

void Fiber::Entered() {
#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &last_from->stack_, &last_from->stack_bytes_);
#endif
}

FiberStacks::FiberStacks(uint32_t count, size_t bytes) : count_(count), bytes_(bytes) {
  void* memory = mmap(nullptr, count * (bytes + kGuardBytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("no memory for the stacks of emulated threads");
    std::abort();
  }
  memory_ = static_cast<std::byte*>(memory);
  for (uint32_t i = 0; i < count; ++i) mprotect(At(i) - kGuardBytes, kGuardBytes, PROT_NONE);
}

FiberStacks::~FiberStacks() {
#ifdef CAIRN_SIMT_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(memory_, count_ * (bytes_ + kGuardBytes));
#endif
  munmap(memory_, count_ * (bytes_ + kGuardBytes));
}

}  // namespace cairn::simt::emulated
