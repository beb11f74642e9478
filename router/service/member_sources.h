// The source of nodes that a configuration names.
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/server/line_log.h"
#include "router/membership/member_source.h"
#include "router/service/router_config.h"

namespace cairn::router {

// Null where the nodes are a list of flags. Clock and random outlive it; `log` may be null.
// REQUIRES: a valid configuration.
std::unique_ptr<MemberSource> MakeMemberSource(const RouterConfig& config, const Clock* clock,
                                               RandomSource* random, const LineLog& log);

}  // namespace cairn::router
