#include "client/replay/line_reader.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::replay {
namespace {

constexpr unsigned kChunkBytes = 128 << 10;

}  // namespace

void LineReader::Closer::operator()(gzFile_s* file) const { gzclose(file); }

LineReader::LineReader(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  errno = 0;
  gzFile_s* file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ",
                                            errno == 0 ? "out of memory" : std::strerror(errno)));
  }
  return std::unique_ptr<LineReader>(new LineReader(path, file));
}

std::string LineReader::Place() const { return absl::StrCat(path_, ":", line_number_); }

absl::Status LineReader::Fill() {
  CAIRN_CHECK(chunk_at_ == chunk_.size() && !at_end_);
  chunk_.resize(kChunkBytes);
  chunk_at_ = 0;
  errno = 0;
  const int read = gzread(file_.get(), chunk_.data(), kChunkBytes);
  chunk_.resize(read > 0 ? static_cast<size_t>(read) : 0);
  if (read == static_cast<int>(kChunkBytes)) return absl::OkStatus();
  at_end_ = true;
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (error == Z_OK || error == Z_STREAM_END) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, ": cannot be read past line ", line_number_, ": ",
                   error == Z_ERRNO && errno != 0 ? std::strerror(errno) : reason));
}

absl::StatusOr<bool> LineReader::TakeLine() {
  line_.clear();
  while (true) {
    if (chunk_at_ == chunk_.size()) {
      if (at_end_) return !line_.empty();
      if (absl::Status filled = Fill(); !filled.ok()) return filled;
      continue;
    }
    const absl::string_view rest = absl::string_view(chunk_).substr(chunk_at_);
    const size_t end = rest.find('\n');
    const size_t taken = end == absl::string_view::npos ? rest.size() : end;
    if (line_.size() + taken > kLineBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ":", line_number_ + 1, ": the line is longer than ", kLineBytesMax, " bytes"));
    }
    line_.append(rest.data(), taken);
    chunk_at_ += taken;
    if (end == absl::string_view::npos) continue;
    ++chunk_at_;
    return true;
  }
}

absl::StatusOr<std::optional<absl::string_view>> LineReader::Peek() {
  while (!peeked_) {
    absl::StatusOr<bool> taken = TakeLine();
    if (!taken.ok()) return taken.status();
    if (!*taken) return std::nullopt;
    ++line_number_;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    peeked_ = !absl::StripAsciiWhitespace(line_).empty();
  }
  return line_;
}

absl::StatusOr<std::optional<absl::string_view>> LineReader::Next() {
  absl::StatusOr<std::optional<absl::string_view>> line = Peek();
  peeked_ = false;
  return line;
}

}  // namespace cairn::replay
