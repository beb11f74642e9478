// ParseCommandLine: sets the program's Abseil flags from a command line and from flag files.
//
// Accepts --name=value, --name value, --name and --noname for a bool, and dashes for underscores in
// names; "--" ends the flags; a later value of a flag replaces an earlier one.
// --flagfile=PATH[,PATH] reads more of them, one --name=value a line, with '#' comments, in place.
// Three more words are not flags but ask for something: --help, --version, --print-config.
//
// It stands in for absl::ParseCommandLine, which exits by itself at the first kinds of errors and
// knows no suggestions: here all mistakes come back at once as one INVALID_ARGUMENT, one line each,
// naming the place, the flag, its value and, for an unknown flag, the nearest known one. Flags
// before a mistake may be set already. Not thread-safe: call it first thing in main.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn {

inline constexpr size_t kFlagFileBytesMax = 1 << 20;
// Flag files within flag files.
inline constexpr int kFlagFileDepthMax = 8;

enum class CommandLineAction { kRun, kHelp, kVersion, kPrintConfig };

struct CommandLine {
  CommandLineAction action = CommandLineAction::kRun;
  // What is no flag, in order.
  std::vector<std::string> arguments;
};

// `args` are those of main without the program's name.
absl::StatusOr<CommandLine> ParseCommandLine(absl::Span<const std::string> args);

}  // namespace cairn
