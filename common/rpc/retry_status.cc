#include "common/rpc/retry_status.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "google/rpc/error_details.pb.h"

namespace cairn {
namespace {

absl::Duration WithinBounds(absl::Duration delay) {
  return std::clamp(delay, absl::ZeroDuration(), kRetryDelayMax);
}

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::Duration delay) {
  CAIRN_CHECK(!status.ok());
  CAIRN_CHECK(delay >= absl::ZeroDuration());
  absl::Duration rest = WithinBounds(delay);
  google::rpc::RetryInfo info;
  google::protobuf::Duration* const retry_delay = info.mutable_retry_delay();
  retry_delay->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
  retry_delay->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  status.SetPayload(kRetryInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoTypeUrl);
  if (!payload) return std::nullopt;
  google::rpc::RetryInfo info;
  if (!info.ParseFromString(std::string(*payload)) || !info.has_retry_delay()) return std::nullopt;
  const google::protobuf::Duration& delay = info.retry_delay();
  return WithinBounds(absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos()));
}

}  // namespace cairn
