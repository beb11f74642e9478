// StartProgram: the first thing in main: flags, their validation, and the words that only print.
//
//   int main(int argc, char** argv) {
//     std::vector<std::string> arguments;
//     if (auto exit = cairn::StartProgram(kProgram, argc, argv, ValidateConfig, &arguments)) {
//       return *exit;
//     }
//
// --help and --version print and end. Otherwise the flags are parsed and validated; mistakes are
// printed to stderr, all of them, and end the program with kExitUsage. --print-config then prints
// the whole configuration as a flag file that gives the same one again. Nothing else has been done
// by the time it returns: no thread started, nothing listened on.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
// The command line or the configuration is wrong.
inline constexpr int kExitUsage = 2;

struct ProgramInfo {
  absl::string_view name;
  // Completes "cairn-node: ...", a line or more.
  absl::string_view summary;
  absl::string_view version;
  // Whether it takes arguments that are no flags; without them they are a mistake.
  bool takes_arguments = false;
};

// The exit status, if the program is to end now. `validate` sees the parsed flags; it may be null.
// `arguments`, where not null, gets what is no flag.
std::optional<int> StartProgram(const ProgramInfo& info, int argc, char** argv,
                                const std::function<absl::Status()>& validate,
                                std::vector<std::string>* arguments = nullptr);

// Every flag of the program, by name, each with its help as comment and its value.
void PrintConfig(const ProgramInfo& info, std::ostream& out);
// How to call the program, and every flag with its default.
void PrintHelp(const ProgramInfo& info, std::ostream& out);

}  // namespace cairn
