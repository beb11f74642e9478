#include "client/ctl/place_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace cairn::ctl {

std::string PrintableName(absl::string_view name) { return absl::Utf8SafeCEscape(name); }

std::string RareTerms(const nlohmann::ordered_json& replica) {
  constexpr std::pair<const char*, const char*> kSeconds[] = {
      {"ramp_seconds", "ramp"}, {"label_seconds", "label"}, {"session_seconds", "session"}};
  std::vector<std::string> terms;
  for (const auto& [member, name] : kSeconds) {
    const double seconds = replica.value(member, 0.0);
    if (seconds != 0) terms.push_back(absl::StrFormat("%s %+.3f s", name, seconds));
  }
  constexpr char kExact[] = "HOLDER_STATE_EXACT";
  const double trust = replica.value("trust", 1.0);
  if (trust != 1) terms.push_back(absl::StrFormat("trust %.2f", trust));
  const std::string state = replica.value("holder_state", kExact);
  if (state != kExact) {
    terms.push_back(absl::StrCat("node ", absl::StripPrefix(state, "HOLDER_STATE_")));
  }
  return absl::StrJoin(terms, ", ");
}

}  // namespace cairn::ctl
