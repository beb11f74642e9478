// Command: one subcommand of cairnctl.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/ctl/command_line.h"

namespace cairn::ctl {

// Where a command reads and writes. Borrowed.
struct Streams {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  // For what a person sees meanwhile; may be null.
  std::ostream* err = nullptr;
};

struct Command {
  std::string name;
  std::string summary;  // One line.
  std::vector<FlagSpec> flags;
  // A usage error (usage_error.h) ends the program with 2, any other with 1.
  absl::Status (*run)(const CommandLine& line, const Streams& streams) = nullptr;
  std::string details = {};  // Paragraphs of --help, whole lines; may be empty.
};

// The flags that every command has: --output; and those of commands that ask a node: --node.
std::vector<FlagSpec> WithCommonFlags(std::vector<FlagSpec> flags, bool asks_node);

// Each in a file of its own.
Command DescribeCommand();
Command RegisterCommand();
Command LookupCommand();
Command PutCommand();
Command GetCommand();
Command ClearCommand();
Command RetireCommand();
Command PurgeCommand();
Command PinCommand();
Command PullCommand();
Command KeysCommand();
Command RouteCommand();
Command ExplainCommand();
Command ReplayCommand();
Command ReplayDecisionsCommand();
Command DecodeDemoCommand();

// Runs `arguments` (without the program's name): finds the command, parses, runs, and says on `err`
// what went wrong and what to do. The program's exit code.
int RunCairnctl(const std::vector<std::string>& arguments, const Streams& streams,
                std::ostream* err);

}  // namespace cairn::ctl
