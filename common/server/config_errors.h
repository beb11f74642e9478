// ConfigErrors: everything that is wrong with a configuration, found in one pass.
//
// A program checks each of its flags through it before it listens anywhere, so that who starts it
// sees all mistakes at once, each with the flag's name, its value and what is allowed. Not
// thread-safe; lives on the stack of the function that validates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/server/byte_size.h"

namespace cairn {

class ConfigErrors {
 public:
  // Flags are named without dashes. Bounds are inclusive.
  void CheckRange(absl::string_view flag, int64_t value, int64_t min, int64_t max);
  void CheckReal(absl::string_view flag, double value, double min, double max);
  void CheckRange(absl::string_view flag, ByteSize value, ByteSize min, ByteSize max);
  void CheckRange(absl::string_view flag, absl::Duration value, absl::Duration min,
                  absl::Duration max);
  void CheckNotEmpty(absl::string_view flag, absl::string_view value);
  // An address that ListenAddress parses.
  void CheckListenAddress(absl::string_view flag, absl::string_view value);

  // Anything else: `allowed` completes "--flag=value: must be ...".
  void Check(bool ok, absl::string_view flag, absl::string_view value, absl::string_view allowed);
  // A check that says itself what is wrong; its message should name the flag.
  void Add(const absl::Status& status);

  bool ok() const { return errors_.empty(); }
  // OK, or INVALID_ARGUMENT with one line for each error, in the order they were found.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> errors_;
};

}  // namespace cairn
