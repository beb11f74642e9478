#include "common/security/watched_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/security/text_lines.h"

namespace cairn {

absl::StatusOr<std::string> ReadSecurityFile(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  }
  const absl::Cleanup close = [file] { std::fclose(file); };
  std::string text(kSecurityFileBytesMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), file));
  if (std::ferror(file) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  }
  if (text.size() > kSecurityFileBytesMax) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": larger than ", kSecurityFileBytesMax, " bytes"));
  }
  return text;
}

}  // namespace cairn
