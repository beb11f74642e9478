// DecisionSink: who wants to know what the router decided.
//
// Thread-safe. Sampling goes by booking, so that a decision and what became of it are wanted
// together, and so that what is wanted does not depend on what was decided.
#pragma once

#include "router/decisions/decision.h"

namespace cairn::router {

class DecisionSink {
 public:
  virtual ~DecisionSink() = default;

  // Called under the router's lock: neither waits nor takes a lock.
  virtual bool Wants(const BookingId& booking) const = 0;
  // Called with no lock held, for what is wanted; sets the time itself. Must not wait for I/O.
  virtual void OnDecision(Decision decision) = 0;
  virtual void OnOutcome(DecisionOutcome outcome) = 0;
};

}  // namespace cairn::router
