// EventLog: what happened, as a digest of all of it and the last lines in words.
//
// Two runs with one digest did the same at the same times. Not thread-safe.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"

namespace cairn::sim {

class EventLog {
 public:
  static constexpr size_t kLinesKept = 400;

  // Borrows the clock.
  explicit EventLog(const Clock* clock);

  void Note(absl::string_view line);
  // Every line from now on goes there too; null: nowhere. Borrows it.
  void CopyTo(std::ostream* out) { copy_ = out; }

  uint64_t digest() const { return digest_; }
  uint64_t lines_noted() const { return lines_noted_; }
  // At most the last `count` of those kept, oldest first, each with its time in seconds.
  std::vector<std::string> LastLines(size_t count) const;

 private:
  struct Line {
    absl::Time at;
    std::string text;
  };
  std::string InWords(const Line& line) const;

  const Clock* const clock_;
  const absl::Time began_at_;
  std::vector<Line> lines_;  // A ring.
  uint64_t lines_noted_ = 0;
  uint64_t digest_ = 0;
  std::ostream* copy_ = nullptr;
};

}  // namespace cairn::sim
