#include "tests/sim/event_log.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "kernels/byte_hash.h"

namespace cairn::sim {

EventLog::EventLog(const Clock* clock)
    : clock_(clock), began_at_(clock->SteadyNow()), lines_(kLinesKept) {}

void EventLog::Note(absl::string_view line) {
  Line& kept = lines_[lines_noted_++ % kLinesKept];
  kept.at = clock_->SteadyNow();
  kept.text.assign(line.data(), line.size());
  const int64_t since = absl::ToInt64Nanoseconds(kept.at - began_at_);
  digest_ = kernels::ByteHash64(&since, sizeof(since), digest_);
  digest_ = kernels::ByteHash64(line.data(), line.size(), digest_);
  if (copy_ != nullptr) *copy_ << InWords(kept) << '\n';
}

std::string EventLog::InWords(const Line& line) const {
  return absl::StrFormat("%12.6f  %s", absl::ToDoubleSeconds(line.at - began_at_), line.text);
}

std::vector<std::string> EventLog::LastLines(size_t count) const {
  std::vector<std::string> last;
  const uint64_t kept = std::min<uint64_t>({lines_noted_, kLinesKept, count});
  for (uint64_t i = lines_noted_ - kept; i < lines_noted_; ++i) {
    last.push_back(InWords(lines_[i % kLinesKept]));
  }
  return last;
}

}  // namespace cairn::sim
