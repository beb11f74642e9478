#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/rpc/retry_status.h"

namespace cairn::ctl {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

std::vector<Command> AllCommands() {
  return {DescribeCommand(), RegisterCommand(), LookupCommand(), PutCommand(),
          GetCommand(),      ClearCommand(),    PinCommand(),    RetireCommand(),
          PurgeCommand(),    KeysCommand(),     ReplayCommand()};
}

std::string Usage() {
  std::string usage =
      "usage: cairnctl COMMAND [--flag value]...\n"
      "Asks one cache node, or computes what needs none.\n\ncommands:\n";
  for (const Command& command : AllCommands()) {
    absl::StrAppend(&usage, absl::StrFormat("  %-10s %s\n", command.name, command.summary));
  }
  absl::StrAppend(&usage, "\ncairnctl COMMAND --help says which flags a command takes.\n");
  return usage;
}

std::string UsageOf(const Command& command) {
  return absl::StrCat("usage: cairnctl ", command.name, " [--flag value]...\n", command.summary,
                      "\n\n", HelpOfFlags(command.flags));
}

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

// What a person can do about a failure.
std::string Advice(const absl::Status& status, bool asks_router) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      if (asks_router) {
        return "Is a router listening there? `cairn-router --insecure --nodes=HOST:PORT` starts "
               "one on loopback; --router says where else to look, --node does without one.";
      }
      return "Is a node listening there? `cairn-node --insecure --node-id=NAME` starts one on "
             "loopback; --node says where else to look.";
    case absl::StatusCode::kFailedPrecondition:
      return "`cairnctl register --name NAME --namespace FILE` binds a name that is free; "
             "`cairnctl describe` lists what is registered.";
    case absl::StatusCode::kResourceExhausted:
      return absl::StrCat("The node has no room now; try again in ",
                          absl::FormatDuration(RetryAfter(status).value_or(kRetryDelayDefault)),
                          ".");
    case absl::StatusCode::kDeadlineExceeded:
      return "The node did not answer in time; `cairnctl describe` says how busy it is.";
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "The node does not allow this to this caller. --tls-ca, --tls-cert and --tls-key, or "
             "--token-file, say who calls; --tenant, or --as, says for whom.";
    default:
      return "";
  }
}

int Fail(absl::string_view what, const CommandLine& line, const absl::Status& status,
         std::ostream* err) {
  *err << what << ": " << TextOf(status) << "\n";
  const bool asks_router = line.Knows("router") && !line.Given("node");
  const std::string advice = Advice(status, asks_router);
  if (!advice.empty()) *err << advice << "\n";
  return kExitFailure;
}

// What was printed counts only when it arrived: scripts read it.
int Finish(absl::string_view what, const Streams& streams, std::ostream* err) {
  errno = 0;
  streams.out->flush();
  if (streams.out->good()) return 0;
  *err << what << ": the output cannot be written"
       << (errno == 0 ? "" : absl::StrCat(": ", std::strerror(errno))) << "\n";
  return kExitFailure;
}

int FailUsage(absl::string_view what, const absl::Status& status, const std::string& usage,
              std::ostream* err) {
  *err << what << ": " << status.message() << "\n\n" << usage;
  return kExitUsage;
}

absl::Status UnknownCommand(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : AllCommands()) known.push_back(command.name);
  return UsageError(absl::StrCat("unknown command '", name, "'", Suggestion(name, known)));
}

}  // namespace

std::vector<FlagSpec> WithCommonFlags(std::vector<FlagSpec> flags, bool asks_node) {
  if (asks_node) {
    flags.push_back({"node", "HOST:PORT", "127.0.0.1:7070", "the cache node to ask"});
  }
  const bool asks = std::any_of(flags.begin(), flags.end(),
                                [](const FlagSpec& flag) { return flag.name == "node"; });
  if (asks) {
    for (const FlagSpec& flag : SecurityFlags()) flags.push_back(flag);
  }
  flags.push_back({"output", "FORMAT", "text", "text or json"});
  return flags;
}

int RunCairnctl(const std::vector<std::string>& arguments, const Streams& streams,
                std::ostream* err) {
  if (arguments.empty()) {
    *err << Usage();
    return kExitUsage;
  }
  if (AsksForHelp(arguments[0])) {
    *streams.out << Usage();
    return Finish("cairnctl", streams, err);
  }
  const std::vector<Command> commands = AllCommands();
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& one) { return one.name == arguments[0]; });
  if (command == commands.end()) {
    return FailUsage("cairnctl", UnknownCommand(arguments[0]), Usage(), err);
  }
  const std::string what = absl::StrCat("cairnctl ", command->name);
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (std::any_of(rest.begin(), rest.end(), AsksForHelp)) {
    *streams.out << UsageOf(*command);
    return Finish(what, streams, err);
  }
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(command->flags, rest);
  if (!line.ok()) return FailUsage(what, line.status(), UsageOf(*command), err);
  const absl::Status status = command->run(*line, {streams.in, streams.out, err});
  if (status.ok()) return Finish(what, streams, err);
  if (IsUsageError(status)) return FailUsage(what, status, UsageOf(*command), err);
  return Fail(what, *line, status, err);
}

}  // namespace cairn::ctl
