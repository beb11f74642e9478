#include "cache_node/pull/pull_config.h"

#include "common/wire/limits.h"

namespace cairn::node {

void PullConfig::Check(ConfigErrors& errors) const {
  errors.CheckRange("pull-threads", int64_t{threads}, int64_t{1}, int64_t{kThreadsMax});
  // One frame is the least that is waited for.
  errors.Check(bytes_per_second.bytes() == 0 || bytes_per_second.bytes() >= kFramePayloadBytesMax,
               "pull-bytes-per-second", bytes_per_second.ToString(),
               "0 for no bound, or 1MiB at least");
  errors.Add(security.Check("peer-"));
}

}  // namespace cairn::node
