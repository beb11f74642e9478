#include "common/server/program.h"

#include <iostream>
#include <utility>

#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/server/flag_names.h"
#include "common/server/flag_parser.h"

namespace cairn {
namespace {

constexpr size_t kHelpColumns = 96;

// `text` in lines that begin with `indent` and end by column kHelpColumns where words allow.
std::string Wrapped(absl::string_view text, absl::string_view indent) {
  std::string out;
  std::string line(indent);
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const bool first = line.size() == indent.size();
    if (!first && line.size() + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(&out, line, "\n");
      line = absl::StrCat(indent, word);
    } else {
      absl::StrAppend(&line, first ? "" : " ", word);
    }
  }
  return absl::StrCat(out, line, "\n");
}

// As people write them; underscores are read too.
std::string Spelled(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

int Refuse(const ProgramInfo& info, const absl::Status& status) {
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    std::cerr << info.name << ": " << line << "\n";
  }
  return kExitUsage;
}

}  // namespace

std::optional<int> StartProgram(const ProgramInfo& info, int argc, char** argv,
                                const std::function<absl::Status()>& validate,
                                std::vector<std::string>* arguments) {
  CAIRN_CHECK(argc >= 1);
  absl::StatusOr<CommandLine> line =
      ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return Refuse(info, line.status());
  if (line->action == CommandLineAction::kHelp) {
    PrintHelp(info, std::cout);
    return kExitOk;
  }
  if (line->action == CommandLineAction::kVersion) {
    std::cout << info.name << " " << info.version << "\n";
    return kExitOk;
  }
  if (!info.takes_arguments && !line->arguments.empty()) {
    return Refuse(info, absl::InvalidArgumentError(absl::StrCat(
                            "'", line->arguments[0], "' is no flag, and arguments are not taken")));
  }
  if (validate != nullptr) {
    if (const absl::Status status = validate(); !status.ok()) return Refuse(info, status);
  }
  if (line->action == CommandLineAction::kPrintConfig) {
    PrintConfig(info, std::cout);
    return kExitOk;
  }
  if (arguments != nullptr) *arguments = std::move(line->arguments);
  return std::nullopt;
}

void PrintConfig(const ProgramInfo& info, std::ostream& out) {
  out << "# " << info.name << " " << info.version << "\n";
  for (const std::string& name : AllFlagNames()) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    CAIRN_CHECK(flag != nullptr);
    out << "\n"
        << Wrapped(flag->Help(), "# ") << "--" << Spelled(name) << "=" << flag->CurrentValue()
        << "\n";
  }
}

void PrintHelp(const ProgramInfo& info, std::ostream& out) {
  out << info.name << ": " << info.summary << "\n\nFlags, as --name=value:\n";
  for (const std::string& name : AllFlagNames()) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    CAIRN_CHECK(flag != nullptr);
    out << "  --" << Spelled(name)
        << "  (default: " << (flag->DefaultValue().empty() ? "empty" : flag->DefaultValue())
        << ")\n"
        << Wrapped(flag->Help(), "      ");
  }
  out << "\nAlso:\n"
         "  --flagfile=PATH[,PATH]  read flags from files, one --name=value a line, # for "
         "comments\n"
         "  --print-config          print the configuration as a flag file, and end\n"
         "  --version, --help       print that, and end\n";
}

}  // namespace cairn
