// TenantQuotaFile: what each tenant may take of a node, as an operator writes it.
//
// One tenant a line, `#` begins a comment, `*` is every tenant that has no line of its own; what a
// line leaves out has no limit:
//
//     team-a  host=64GiB host-kept=16GiB disk=1TiB leased=8GiB reserved=4GiB
//     *       host=16GiB requests=200 bytes=1GiB
//
// `host`, `disk`, `leased`, `reserved`, `pinned` (by wish): at most so much; `host-kept`: others
// take nothing from it; `requests`, `bytes`: at most so many a second. Strict: a line that means
// nothing is an error. No state; thread-safe.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/tenant_quotas.h"
#include "cache_node/tenants/tenant_rates.h"
#include "common/server/byte_size.h"

namespace cairn::node {

inline constexpr size_t kQuotaLinesMax = 16384;

struct TenantQuotaLines {
  TenantQuotas quotas;
  TenantRateLimits rates;
};

// INVALID_ARGUMENT naming `file`, the line, what is wrong with it and what to write; and when what
// is kept for all tenants is over `kept_max`, which must leave room to move in.
absl::StatusOr<TenantQuotaLines> ParseTenantQuotas(absl::string_view text, absl::string_view file,
                                                   ByteSize kept_max);

}  // namespace cairn::node
