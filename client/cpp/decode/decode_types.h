// Words of served decode that its parts share.
#pragma once

#include <cstdint>

#include "common/base/bytes16.h"

namespace cairn {

// A sequence of one node.
using SequenceId = Bytes16<struct SequenceIdTag>;

// Positions [begin, end) of a sequence.
struct TokenRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return begin >= end; }
  uint64_t size() const { return empty() ? 0 : end - begin; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

}  // namespace cairn
