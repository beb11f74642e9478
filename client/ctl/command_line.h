// CommandLine: the flags of one subcommand.
//
// `--name value`, `--name=value`, and `--name` alone for switches; a flag comes once. Nothing else
// is on a command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn::ctl {

struct FlagSpec {
  std::string name;        // Without dashes.
  std::string value_name;  // As in "FILE"; empty for a switch.
  std::string fallback;    // Value when it is not given.
  std::string help;
};

class CommandLine {
 public:
  // A usage error names what is wrong and the nearest flag.
  static absl::StatusOr<CommandLine> Parse(const std::vector<FlagSpec>& specs,
                                           const std::vector<std::string>& arguments);

  // As given, or the fallback. REQUIRES: one of the specs.
  const std::string& Get(absl::string_view name) const;
  // Whether it is one of the specs.
  bool Knows(absl::string_view name) const { return values_.find(name) != values_.end(); }
  // A switch that is there, or any flag that was given.
  bool Given(absl::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, bool, std::less<>> given_;
};

// One line a flag.
std::string HelpOfFlags(const std::vector<FlagSpec>& specs);

}  // namespace cairn::ctl
