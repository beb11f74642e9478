#include "common/server/line_log.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace cairn {

LineLog StderrLog(absl::string_view program) {
  return [program = std::string(program)](absl::string_view line) {
    std::fputs(absl::StrCat(program, ": ", line, "\n").c_str(), stderr);
  };
}

}  // namespace cairn
