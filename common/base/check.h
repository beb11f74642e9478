// CAIRN_CHECK: our own invariants, always on.
//
// A failed check prints the place, the condition and an optional message to stderr and aborts. Use
// it for what only a bug of ours can break, never for bytes that came from outside the process:
// those get an absl::Status. (Debian's Abseil has no absl/log/check.h.)
#pragma once

#include "absl/strings/string_view.h"

namespace cairn {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              absl::string_view message);

}  // namespace cairn

#define CAIRN_CHECK(condition)                          \
  (__builtin_expect(static_cast<bool>(condition), true) \
       ? static_cast<void>(0)                           \
       : ::cairn::CheckFailed(__FILE__, __LINE__, #condition, {}))

// As CAIRN_CHECK; `message` (anything that converts to absl::string_view) is evaluated on failure
// only.
#define CAIRN_CHECK_MSG(condition, message)             \
  (__builtin_expect(static_cast<bool>(condition), true) \
       ? static_cast<void>(0)                           \
       : ::cairn::CheckFailed(__FILE__, __LINE__, #condition, (message)))

#define CAIRN_CHECK_OK(expression)                                           \
  do {                                                                       \
    const auto& cairn_check_status = (expression);                           \
    CAIRN_CHECK_MSG(cairn_check_status.ok(), cairn_check_status.ToString()); \
  } while (false)
