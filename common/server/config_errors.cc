#include "common/server/config_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/server/listen_address.h"

namespace cairn {
namespace {

std::string Text(int64_t value) { return absl::StrCat(value); }
std::string Text(double value) { return absl::StrCat(value); }
std::string Text(ByteSize value) { return value.ToString(); }
std::string Text(absl::Duration value) { return absl::FormatDuration(value); }

// False also for a value that does not compare, such as a NaN.
template <typename T>
bool InRange(const T& value, const T& min, const T& max) {
  return value >= min && value <= max;
}

template <typename T>
std::string RangeText(const T& min, const T& max) {
  return absl::StrCat("from ", Text(min), " to ", Text(max));
}

}  // namespace

void ConfigErrors::CheckRange(absl::string_view flag, int64_t value, int64_t min, int64_t max) {
  Check(InRange(value, min, max), flag, Text(value), RangeText(min, max));
}

void ConfigErrors::CheckReal(absl::string_view flag, double value, double min, double max) {
  Check(InRange(value, min, max), flag, Text(value), RangeText(min, max));
}

void ConfigErrors::CheckRange(absl::string_view flag, ByteSize value, ByteSize min, ByteSize max) {
  Check(InRange(value, min, max), flag, Text(value), RangeText(min, max));
}

void ConfigErrors::CheckRange(absl::string_view flag, absl::Duration value, absl::Duration min,
                              absl::Duration max) {
  Check(InRange(value, min, max), flag, Text(value), RangeText(min, max));
}

void ConfigErrors::CheckNotEmpty(absl::string_view flag, absl::string_view value) {
  Check(!value.empty(), flag, value, "set");
}

void ConfigErrors::CheckListenAddress(absl::string_view flag, absl::string_view value) {
  const absl::Status status = ListenAddress::Parse(value).status();
  if (!status.ok()) errors_.push_back(absl::StrCat("--", flag, ": ", status.message()));
}

void ConfigErrors::Check(bool ok, absl::string_view flag, absl::string_view value,
                         absl::string_view allowed) {
  if (!ok) errors_.push_back(absl::StrCat("--", flag, "=", value, ": must be ", allowed));
}

void ConfigErrors::Add(const absl::Status& status) {
  if (!status.ok()) errors_.emplace_back(status.message());
}

absl::Status ConfigErrors::ToStatus() const {
  if (ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
}

}  // namespace cairn
