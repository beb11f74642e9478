// What is said of a replica's place in a ranking, for people: of an answer, or of a decision that
// was recorded. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/strings/string_view.h"

namespace cairn::ctl {

// A name from a router or a file, as it can go to a terminal.
std::string PrintableName(absl::string_view name);

// Of ramp_seconds, label_seconds, session_seconds, trust and holder_state those that are not as
// with most replicas, as in "label +5.000 s, trust 0.80". Empty: none. Members that are missing are
// as with most.
std::string RareTerms(const nlohmann::ordered_json& replica);

}  // namespace cairn::ctl
