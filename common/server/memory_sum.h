// MemorySum: what a process may come to hold, as named terms, against its limit.
//
// A program adds up the bounds of its parts at start and refuses to run when they exceed the limit
// that it was given: a limit that is kept by arithmetic needs no luck later. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/server/byte_size.h"

namespace cairn {

class MemorySum {
 public:
  // `flag`, without dashes, is what makes this term smaller; empty for a term that is fixed.
  void Add(absl::string_view term, ByteSize size, absl::string_view flag = "");

  // Saturates at 2^63 - 1.
  ByteSize total() const { return total_; }

  // One line a term with its bytes and flag, then the sum.
  std::string Table() const;

  // OK if the sum is at most `limit`. Otherwise FAILED_PRECONDITION with the table, how much is too
  // much, and what to change: the flag of the largest term, or `limit_flag`.
  absl::Status CheckWithin(ByteSize limit, absl::string_view limit_flag) const;

 private:
  struct Term {
    std::string name;
    ByteSize size;
    std::string flag;
  };
  std::vector<Term> terms_;
  ByteSize total_;
};

}  // namespace cairn
