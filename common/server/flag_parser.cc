#include "common/server/flag_parser.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/server/flag_names.h"

namespace cairn {
namespace {

constexpr char kFlagFile[] = "flagfile";
// Words that look like flags and ask for something.
constexpr std::pair<absl::string_view, CommandLineAction> kActions[] = {
    {"help", CommandLineAction::kHelp},
    {"version", CommandLineAction::kVersion},
    {"print_config", CommandLineAction::kPrintConfig}};

// One --name or --name=value, and where it was read.
struct FlagText {
  std::string place;
  std::string name;
  std::optional<std::string> value;
};

FlagText Split(absl::string_view text, std::string place) {
  if (!absl::ConsumePrefix(&text, "--")) absl::ConsumePrefix(&text, "-");
  const size_t equals = text.find('=');
  FlagText flag{std::move(place), absl::StrReplaceAll(text.substr(0, equals), {{"-", "_"}}), {}};
  if (equals != absl::string_view::npos) flag.value = std::string(text.substr(equals + 1));
  return flag;
}

// As --help writes it.
std::string Dashed(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

// What is wrong with a value, without abseil's words about the flag and the value, which come
// first anyway; it has no others for numbers.
std::string ReasonOf(absl::string_view name, absl::string_view value, absl::string_view error) {
  const std::string said =
      absl::StrCat("Illegal value '", value, "' specified for flag '", name, "'");
  absl::ConsumePrefix(&error, said);
  absl::ConsumePrefix(&error, "; ");
  if (error.empty()) return "no value of this flag's kind; --help says what it takes";
  return std::string(error);
}

class Parser {
 public:
  absl::StatusOr<CommandLine> Parse(absl::Span<const std::string> args) {
    size_t i = 0;
    while (i < args.size()) {
      const std::string& arg = args[i++];
      if (arg == "--") break;
      if (arg.size() < 2 || arg[0] != '-') {
        line_.arguments.push_back(arg);
        continue;
      }
      FlagText flag = Split(arg, "");
      if (TakesNextArgument(flag) && i < args.size() && !absl::StartsWith(args[i], "--")) {
        flag.value = args[i++];
      }
      Apply(flag, 0);
    }
    for (; i < args.size(); ++i) line_.arguments.push_back(args[i]);
    if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
    return std::move(line_);
  }

 private:
  // Whether "--name value" is how this flag may be written.
  static bool TakesNextArgument(const FlagText& flag) {
    if (flag.value.has_value()) return false;
    if (flag.name == kFlagFile) return true;
    const absl::CommandLineFlag* const known = absl::FindCommandLineFlag(flag.name);
    return known != nullptr && !known->IsOfType<bool>();
  }

  void AddError(const FlagText& flag, absl::string_view what) {
    errors_.push_back(absl::StrCat(flag.place, "--", Dashed(flag.name), what));
  }

  void Apply(const FlagText& flag, int depth) {
    for (const auto& [name, action] : kActions) {
      if (flag.name != name) continue;
      line_.action = action;
      if (flag.value.has_value()) AddError(flag, ": takes no value");
      return;
    }
    if (flag.name == kFlagFile) return ApplyFiles(flag, depth);
    absl::CommandLineFlag* const known = absl::FindCommandLineFlag(flag.name);
    if (known != nullptr) return Set(flag, known);
    if (!SetNegated(flag)) AddUnknown(flag);
  }

  void Set(const FlagText& flag, absl::CommandLineFlag* known) {
    if (!flag.value.has_value() && !known->IsOfType<bool>()) {
      return AddError(flag, ": needs a value");
    }
    const std::string value = flag.value.value_or("true");
    // A flag file could not say it.
    if (absl::StrContains(value, '\n')) return AddError(flag, ": its value holds a line break");
    std::string error;
    if (known->ParseFrom(value, &error)) return;
    AddError(flag, absl::StrCat("=", value, ": ", ReasonOf(known->Name(), value, error)));
  }

  // --noname for a bool.
  bool SetNegated(const FlagText& flag) {
    absl::string_view name = flag.name;
    if (!absl::ConsumePrefix(&name, "no")) return false;
    absl::CommandLineFlag* const known = absl::FindCommandLineFlag(name);
    if (known == nullptr || !known->IsOfType<bool>()) return false;
    if (flag.value.has_value()) {
      AddError(flag, ": takes no value");
    } else {
      Set({flag.place, std::string(name), "false"}, known);
    }
    return true;
  }

  void AddUnknown(const FlagText& flag) {
    std::vector<std::string> names = AllFlagNames();
    names.push_back(kFlagFile);
    for (const auto& [name, action] : kActions) names.emplace_back(name);
    const std::optional<std::string> nearest = NearestName(flag.name, names);
    AddError(flag, nearest.has_value()
                       ? absl::StrCat(": unknown flag; did you mean --", Dashed(*nearest), "?")
                       : ": unknown flag; --help lists all");
  }

  void ApplyFiles(const FlagText& flag, int depth) {
    if (!flag.value.has_value() || flag.value->empty()) return AddError(flag, ": needs a path");
    if (depth >= kFlagFileDepthMax) {
      return AddError(flag,
                      absl::StrCat("=", *flag.value, ": flag files within flag files, more than ",
                                   kFlagFileDepthMax, " deep"));
    }
    for (absl::string_view path : absl::StrSplit(*flag.value, ',')) {
      std::ifstream file{std::string(path)};
      std::string text(kFlagFileBytesMax + 1, '\0');
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      text.resize(static_cast<size_t>(file.gcount()));
      if (file.bad() || (!file.eof() && text.empty())) {
        AddError(flag, absl::StrCat("=", path, ": cannot read this file"));
      } else if (text.size() > kFlagFileBytesMax) {
        AddError(flag, absl::StrCat("=", path, ": more than ", kFlagFileBytesMax, " bytes"));
      } else {
        ApplyFile(path, text, depth);
      }
    }
  }

  void ApplyFile(absl::string_view path, absl::string_view text, int depth) {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      if (line.empty() || line[0] == '#') continue;
      FlagText flag = Split(line, absl::StrCat(path, ":", number, ": "));
      if (line[0] != '-') {
        errors_.push_back(absl::StrCat(flag.place, "'", line, "' is no --name=value"));
      } else {
        Apply(flag, depth + 1);
      }
    }
  }

  CommandLine line_;
  std::vector<std::string> errors_;
};

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(absl::Span<const std::string> args) {
  return Parser().Parse(args);
}

}  // namespace cairn
