#include "common/security/watched_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/security/text_lines.h"

namespace cairn {

absl::StatusOr<std::string> ReadSecurityFile(const std::string& path) {
  const auto cannot = [&path] {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be read: ", std::strerror(errno)));
  };
  // A pipe that nobody writes would hold an open, and then a read, for ever.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return cannot();
  struct stat info {};
  const bool known = fstat(fd, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::FailedPreconditionError(absl::StrCat(path, ": is no regular file"));
  }
  std::FILE* const file = fdopen(fd, "rb");
  if (file == nullptr) {
    close(fd);
    return cannot();
  }
  const absl::Cleanup close = [file] { std::fclose(file); };
  std::string text(kSecurityFileBytesMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), file));
  if (std::ferror(file) != 0) return cannot();
  if (text.size() > kSecurityFileBytesMax) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": larger than ", kSecurityFileBytesMax, " bytes"));
  }
  return text;
}

}  // namespace cairn
