// LineSplitter: whole lines out of bytes that come in pieces of any size. Not thread-safe.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cairn::router {

class LineSplitter {
 public:
  explicit LineSplitter(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // Gives `take` each line that is complete, without its end; empty ones are left out. Stops with
  // what it says when that is not OK; RESOURCE_EXHAUSTED for a line over the bound.
  absl::Status Add(absl::string_view bytes,
                   absl::FunctionRef<absl::Status(absl::string_view)> take) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const absl::string_view piece = bytes.substr(0, end);
      if (begun_.size() + piece.size() > line_bytes_max_) {
        return absl::ResourceExhaustedError(
            absl::StrCat("a line is longer than ", line_bytes_max_, " bytes"));
      }
      begun_.append(piece.data(), piece.size());
      if (end == absl::string_view::npos) return absl::OkStatus();
      bytes.remove_prefix(end + 1);
      const absl::Status taken = begun_.empty() ? absl::OkStatus() : take(begun_);
      begun_.clear();
      if (!taken.ok()) return taken;
    }
    return absl::OkStatus();
  }

  // Forgets what had begun.
  void Reset() { begun_.clear(); }

 private:
  const size_t line_bytes_max_;
  std::string begun_;
};

}  // namespace cairn::router
