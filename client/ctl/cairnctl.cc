#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cpp/retry_policy.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/target.h"

namespace cairn::ctl {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// What begins the value of each flag that names servers; a list of them has more.
constexpr absl::string_view kAddressValue = "HOST:PORT";

std::vector<Command> AllCommands() {
  return {DescribeCommand(),  RegisterCommand(), LookupCommand(),
          PutCommand(),       GetCommand(),      PullCommand(),
          ClearCommand(),     PinCommand(),      RetireCommand(),
          PurgeCommand(),     KeysCommand(),     RouteCommand(),
          ExplainCommand(),   ReplayCommand(),   ReplayDecisionsCommand(),
          DecodeDemoCommand()};
}

std::string Usage() {
  std::string usage =
      "usage: cairnctl COMMAND [--flag value]...\n"
      "Asks cache nodes or a router, or computes what needs neither.\n\ncommands:\n";
  for (const Command& command : AllCommands()) {
    absl::StrAppend(&usage, absl::StrFormat("  %-16s %s\n", command.name, command.summary));
  }
  absl::StrAppend(&usage, "\ncairnctl COMMAND --help says which flags a command takes.\n");
  return usage;
}

std::string UsageOf(const Command& command) {
  return absl::StrCat("usage: cairnctl ", command.name, " [--flag value]...\n", command.summary,
                      "\n\n", command.details, command.details.empty() ? "" : "\n",
                      HelpOfFlags(command.flags));
}

// Beside a mistake: all flags would push it off the screen.
std::string ShortUsageOf(const Command& command) {
  return absl::StrCat("usage: cairnctl ", command.name, " [--flag value]...\n`cairnctl ",
                      command.name, " --help` lists the flags.\n");
}

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

// Before anything is asked: clients take their target for checked.
absl::Status CheckAddresses(const Command& command, const CommandLine& line) {
  for (const FlagSpec& flag : command.flags) {
    if (!absl::StartsWith(flag.value_name, kAddressValue) || !line.Given(flag.name)) continue;
    const bool list = flag.value_name != kAddressValue;
    std::vector<std::string> targets = {line.Get(flag.name)};
    if (list) targets = absl::StrSplit(line.Get(flag.name), ',');
    for (const std::string& target : targets) {
      // Of nodes the command says which list has an empty one.
      if (list && target.empty() && flag.name == "node") continue;
      if (const absl::Status status = ValidateTarget(target); !status.ok()) {
        return UsageError(absl::StrCat("--", flag.name, ": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

// A server that speaks the other of TLS and plain text looks like none.
std::string NoAnswerAdvice(bool asks_router, bool tls) {
  return absl::StrCat(
      asks_router
          ? "Is a router listening there? `cairn-router --insecure --nodes=HOST:PORT` starts one "
            "on loopback; --router says where else to look."
          : "Is a node listening there? `cairn-node --insecure --node-id=NAME` starts one on "
            "loopback; --node says where else to look.",
      tls ? "\nWith --tls-ca it must serve TLS, with a certificate of that CA for this host or for "
            "--tls-name; one that wants a client certificate hangs up on who has none."
          : "\nOne that serves TLS hangs up on a call without --tls-ca.");
}

// What a person can do about a failure.
std::string Advice(const absl::Status& status, bool asks_router, bool tls) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return NoAnswerAdvice(asks_router, tls);
    case absl::StatusCode::kUnimplemented:
      return asks_router ? "What listens there is no router (a node?); --router says where it is."
                         : "What listens there is no cache node (a router?); --node says where "
                           "the node is.";
    case absl::StatusCode::kFailedPrecondition:
      return "`cairnctl register --name NAME --namespace FILE` binds a name that is free; "
             "`cairnctl describe` lists what is registered.";
    case absl::StatusCode::kResourceExhausted:
      return absl::StrCat(
          "The node takes no more now; try again in ",
          absl::FormatDuration(
              absl::Ceil(RetryAfter(status).value_or(kRetryDelayDefault), absl::Milliseconds(1))),
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
  // A router says itself what a request asked in vain; registering is a node's.
  const bool router_only = line.Knows("router") && !line.Knows("node");
  // A node says itself what to do about whom it is to pull from.
  const bool of_peer = absl::StartsWith(status.message(), "source: ");
  if (LeavesNobody(status) || of_peer || (router_only && absl::IsFailedPrecondition(status))) {
    return kExitFailure;
  }
  const bool asks_router = router_only || (line.Knows("router") && !line.Given("node"));
  const bool tls = line.Knows("tls-ca") && line.Given("tls-ca");
  const std::string advice = Advice(status, asks_router, tls);
  if (!advice.empty()) *err << advice << "\n";
  const bool nobody = absl::IsUnavailable(status) || absl::IsUnimplemented(status);
  if (nobody && asks_router && !router_only) *err << "--node asks a node without a router.\n";
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
  const bool asks = std::any_of(flags.begin(), flags.end(), [](const FlagSpec& flag) {
    return flag.name == "node" || flag.name == "router";
  });
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
  if (!line.ok()) return FailUsage(what, line.status(), ShortUsageOf(*command), err);
  absl::Status status = CheckAddresses(*command, *line);
  if (status.ok()) status = command->run(*line, {streams.in, streams.out, err});
  if (status.ok()) return Finish(what, streams, err);
  if (IsUsageError(status)) return FailUsage(what, status, ShortUsageOf(*command), err);
  return Fail(what, *line, status, err);
}

}  // namespace cairn::ctl
