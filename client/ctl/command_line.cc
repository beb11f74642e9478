#include "client/ctl/command_line.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/usage_error.h"
#include "common/base/check.h"

namespace cairn::ctl {
namespace {

absl::Status UnknownFlag(absl::string_view argument, absl::string_view name,
                         const std::vector<FlagSpec>& specs) {
  if (!absl::StartsWith(argument, "--")) {
    return UsageError(absl::StrCat("unexpected argument '", argument, "'; flags begin with --"));
  }
  std::vector<std::string> known;
  for (const FlagSpec& spec : specs) known.push_back(absl::StrCat("--", spec.name));
  return UsageError(
      absl::StrCat("unknown flag '--", name, "'", Suggestion(absl::StrCat("--", name), known)));
}

}  // namespace

absl::StatusOr<CommandLine> CommandLine::Parse(const std::vector<FlagSpec>& specs,
                                               const std::vector<std::string>& arguments) {
  CommandLine line;
  for (const FlagSpec& spec : specs) line.values_[spec.name] = spec.fallback;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name =
        absl::StartsWith(argument, "--") ? argument.substr(2, equals - 2) : argument;
    const auto spec = std::find_if(specs.begin(), specs.end(),
                                   [&](const FlagSpec& one) { return one.name == name; });
    if (spec == specs.end() || name.size() == argument.size()) {
      return UnknownFlag(argument, name, specs);
    }
    if (line.given_[name]) return UsageError(absl::StrCat("--", name, " is given twice"));
    line.given_[name] = true;
    const bool has_value = equals != std::string::npos;
    if (spec->value_name.empty()) {
      if (has_value) return UsageError(absl::StrCat("--", name, " takes no value"));
      continue;
    }
    if (!has_value && i + 1 == arguments.size()) {
      return UsageError(
          absl::StrCat("--", name, " needs a value: --", name, " ", spec->value_name));
    }
    line.values_[name] = has_value ? argument.substr(equals + 1) : arguments[++i];
  }
  return line;
}

const std::string& CommandLine::Get(absl::string_view name) const {
  const auto found = values_.find(name);
  CAIRN_CHECK_MSG(found != values_.end(), name);
  return found->second;
}

bool CommandLine::Given(absl::string_view name) const {
  CAIRN_CHECK_MSG(values_.find(name) != values_.end(), name);
  const auto found = given_.find(name);
  return found != given_.end() && found->second;
}

std::string HelpOfFlags(const std::vector<FlagSpec>& specs) {
  std::string help;
  for (const FlagSpec& spec : specs) {
    std::string what = absl::StrCat("--", spec.name);
    if (!spec.value_name.empty()) absl::StrAppend(&what, " ", spec.value_name);
    absl::StrAppend(&help, absl::StrFormat("  %-22s %s", what, spec.help));
    if (!spec.fallback.empty()) absl::StrAppend(&help, " (default ", spec.fallback, ")");
    absl::StrAppend(&help, "\n");
  }
  return help;
}

}  // namespace cairn::ctl
