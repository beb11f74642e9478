// PullAnswer: what became of blocks that a node was asked to copy from another. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/v1/pull.pb.h"

namespace cairn {

struct PullAnswer {
  std::vector<v1::PullOutcome> outcomes;  // One a key.
  uint64_t pulled_bytes = 0;              // Of those that are PULLED.
  bool complete = false;                  // Nothing of it is on its way any more.
  std::string detail;                     // Why, where the source failed.
};

}  // namespace cairn
