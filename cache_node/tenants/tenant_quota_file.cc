#include "cache_node/tenants/tenant_quota_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/security/text_lines.h"

namespace cairn::node {
namespace {

constexpr char kOthers[] = "*";
constexpr size_t kTenantBytesMax = 256;
constexpr char kKnown[] = "host, host-kept, disk, leased, reserved, pinned, requests, bytes";

struct Line {
  TenantQuota quota;
  TenantRate rate;
};

absl::Status SetBytes(absl::string_view key, absl::string_view value, uint64_t* bytes) {
  const absl::StatusOr<ByteSize> size = ByteSize::Parse(value);
  if (!size.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, "=", Shown(value), ": write a size such as 64GiB"));
  }
  *bytes = size->bytes();
  return absl::OkStatus();
}

absl::Status SetField(absl::string_view key, absl::string_view value, Line* line) {
  if (key == "host") return SetBytes(key, value, &line->quota.host_bytes_max);
  if (key == "host-kept") return SetBytes(key, value, &line->quota.host_bytes_kept);
  if (key == "disk") return SetBytes(key, value, &line->quota.disk_bytes_max);
  if (key == "leased") return SetBytes(key, value, &line->quota.leased_bytes_max);
  if (key == "reserved") return SetBytes(key, value, &line->quota.reserved_bytes_max);
  if (key == "pinned") return SetBytes(key, value, &line->quota.stays_bytes_max);
  if (key == "bytes") return SetBytes(key, value, &line->rate.bytes_per_second);
  if (key != "requests") {
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(key), ": no limit of that name; there are ", kKnown));
  }
  if (!absl::SimpleAtoi(value, &line->rate.requests_per_second)) {
    return absl::InvalidArgumentError(
        absl::StrCat("requests=", Shown(value), ": write a whole number"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Line> ParseFields(absl::Span<const absl::string_view> fields) {
  Line line;
  absl::flat_hash_set<absl::string_view> seen;
  for (const absl::string_view field : fields) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (!seen.insert(parts.first).second) {
      return absl::InvalidArgumentError(absl::StrCat(Shown(parts.first), ": given twice"));
    }
    if (absl::Status status = SetField(parts.first, parts.second, &line); !status.ok()) {
      return status;
    }
  }
  if (line.quota.host_bytes_kept > line.quota.host_bytes_max) {
    return absl::InvalidArgumentError(
        "host-kept is more than host: no tenant keeps more than it may have");
  }
  return line;
}

}  // namespace

absl::StatusOr<TenantQuotaLines> ParseTenantQuotas(absl::string_view text, absl::string_view file,
                                                   ByteSize kept_max) {
  TenantQuotaLines limits;
  absl::flat_hash_set<std::string> seen;
  uint64_t kept = 0;
  const absl::Status status = ForEachLine(text, file, [&](absl::string_view line) -> absl::Status {
    const std::vector<absl::string_view> fields = FieldsOf(line);
    const std::string tenant(fields.front());
    if (tenant.size() > kTenantBytesMax || absl::StrContains(tenant, '=')) {
      return absl::InvalidArgumentError(
          absl::StrCat(Shown(tenant), ": a line begins with a tenant, or * for all others"));
    }
    if (!seen.insert(tenant).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("tenant ", Shown(tenant), " has a line already"));
    }
    if (seen.size() > kQuotaLinesMax) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kQuotaLinesMax, " tenants"));
    }
    const absl::StatusOr<Line> parsed = ParseFields(absl::MakeConstSpan(fields).subspan(1));
    if (!parsed.ok()) return parsed.status();
    if (tenant == kOthers) {
      if (parsed->quota.host_bytes_kept > 0) {
        return absl::InvalidArgumentError(
            "host-kept of *: nobody knows how many tenants that is; name them");
      }
      limits.quotas.others = parsed->quota;
      limits.rates.others = parsed->rate;
      return absl::OkStatus();
    }
    const uint64_t more = parsed->quota.host_bytes_kept;
    if (more > kept_max.bytes() - kept) {
      return absl::InvalidArgumentError(
          absl::StrCat("host-kept: with this line more than ", kept_max.ToString(),
                       " is kept for tenants, as much as may be; lower some"));
    }
    kept += more;
    limits.quotas.named[tenant] = parsed->quota;
    limits.rates.named[tenant] = parsed->rate;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return limits;
}

}  // namespace cairn::node
