// A router's answer about a prompt, for people and as JSON. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "client/cpp/route_types.h"

namespace cairn::ctl {

// Every replica with what its place was made of.
nlohmann::ordered_json RouteJson(const RouteAnswer& answer);
// The same as a table, best first, and a sentence about the first.
void PrintRoute(const RouteAnswer& answer, std::ostream* out);

}  // namespace cairn::ctl
