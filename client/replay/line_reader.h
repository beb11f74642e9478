// LineReader: the lines of a text file, plain or gzipped, in bounded memory.
//
// Not thread-safe. Owns the open file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct gzFile_s;

namespace cairn::replay {

// The longest prompt of real tokens that a key chain takes, written out, fits.
inline constexpr size_t kLineBytesMax = size_t{64} << 20;

class LineReader {
 public:
  // NOT_FOUND when the file cannot be opened, with the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);

  // The next line that is not blank, without its end, or nothing at the end of the file. The view
  // lasts until the next call. INVALID_ARGUMENT for a line over kLineBytesMax; DATA_LOSS when the
  // file cannot be read or its compressed data is damaged or cut.
  absl::StatusOr<std::optional<absl::string_view>> Next();

  // What Next will return, which stays the next line.
  absl::StatusOr<std::optional<absl::string_view>> Peek();

  // Of the line that Next or Peek gave last, from 1.
  uint64_t line_number() const { return line_number_; }

  // "path:line", for messages.
  std::string Place() const;

 private:
  struct Closer {
    void operator()(gzFile_s* file) const;
  };

  LineReader(std::string path, gzFile_s* file);

  absl::Status Fill();
  // Takes one line, blank or not, into line_; false at the end of the file.
  absl::StatusOr<bool> TakeLine();

  const std::string path_;
  std::unique_ptr<gzFile_s, Closer> file_;
  std::string chunk_;  // Read from the file; consumed up to chunk_at_.
  size_t chunk_at_ = 0;
  bool at_end_ = false;
  std::string line_;
  bool peeked_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace cairn::replay
