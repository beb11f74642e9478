// Transfer: one thing that an engine submitted, done call by call.
//
// Used by one thread at a time, which AsyncTransfers sees to. Calls block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/cpp/async/transfer_types.h"

namespace cairn {

class Transfer {
 public:
  enum class Next {
    kStep,  // There is more to do.
    kWait,  // There is more to do when more steps are ready.
    kDone,
  };

  virtual ~Transfer() = default;

  // Makes the next call. `steps_ready`: of a store, how many steps can be read. REQUIRES: not done.
  virtual Next Step(uint32_t steps_ready) = 0;
  // Ends it with CANCELLED, and gives back what it holds. REQUIRES: not done.
  virtual void Abandon() = 0;

  virtual uint32_t steps_done() const { return 0; }
  virtual size_t usable() const { return 0; }
  // REQUIRES: done or abandoned; once.
  virtual TransferResult TakeResult() = 0;
};

}  // namespace cairn
