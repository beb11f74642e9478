// ClientParts: what a client takes from its surroundings, so that a test can give it others.
#pragma once

#include "client/cpp/retry_wait.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/identity/block_hasher.h"

namespace cairn {

// Borrowed; all of them set.
struct ClientParts {
  const BlockHasher* hasher = nullptr;
  const Clock* clock = nullptr;
  RandomSource* random = nullptr;
  RetryWait* wait = nullptr;
};

// The real ones. Owns them; thread-safe; may serve many clients.
class SystemClientParts {
 public:
  ClientParts parts() { return {&hasher_, &clock_, &random_, &wait_}; }

  // Ends waits between attempts, now and later: calls under way fail at their next failure.
  void StopRetries() { wait_.Stop(); }

 private:
  Sha256BlockHasher hasher_;
  SystemClock clock_;
  SecureRandom random_;
  StoppableWait wait_;
};

}  // namespace cairn
