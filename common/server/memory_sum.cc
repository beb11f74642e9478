#include "common/server/memory_sum.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn {
namespace {

constexpr uint64_t kBytesMax = std::numeric_limits<int64_t>::max();
constexpr double kMiB = 1 << 20;

std::string Line(absl::string_view name, ByteSize size, absl::string_view flag) {
  const std::string note = flag.empty() ? "" : absl::StrCat("  --", flag);
  return absl::StrFormat("  %-32s %12.1f MiB%s\n", name, static_cast<double>(size.bytes()) / kMiB,
                         note);
}

}  // namespace

void MemorySum::Add(absl::string_view term, ByteSize size, absl::string_view flag) {
  terms_.push_back({std::string(term), size, std::string(flag)});
  const uint64_t room = kBytesMax - total_.bytes();
  total_ = ByteSize(total_.bytes() + std::min(room, size.bytes()));
}

std::string MemorySum::Table() const {
  std::string table;
  for (const Term& term : terms_) absl::StrAppend(&table, Line(term.name, term.size, term.flag));
  absl::StrAppend(&table, Line("sum", total_, ""));
  return table;
}

absl::Status MemorySum::CheckWithin(ByteSize limit, absl::string_view limit_flag) const {
  if (total_ <= limit) return absl::OkStatus();
  const Term* largest = nullptr;
  for (const Term& term : terms_) {
    if (!term.flag.empty() && (largest == nullptr || term.size > largest->size)) largest = &term;
  }
  const std::string lower = largest == nullptr ? ""
                                               : absl::StrCat("lower --", largest->flag, " (",
                                                              largest->size.ToString(), ") or ");
  return absl::FailedPreconditionError(absl::StrCat(
      "memory adds up to ", total_.bytes() - limit.bytes(), " bytes more than --", limit_flag, "=",
      limit.ToString(), ": ", lower, "raise --", limit_flag, "\n", Table()));
}

}  // namespace cairn
