#include "common/rpc/error_reason.h"

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "google/rpc/error_details.pb.h"

namespace cairn {
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata) {
  CAIRN_CHECK(!status.ok());
  google::rpc::ErrorInfo info;
  info.set_reason(reason.data(), reason.size());
  info.set_domain(kErrorDomain);
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  status.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

std::optional<ErrorReason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoTypeUrl);
  if (!payload) return std::nullopt;
  google::rpc::ErrorInfo info;
  if (!info.ParseFromString(std::string(*payload)) || info.domain() != kErrorDomain) {
    return std::nullopt;
  }
  return ErrorReason{info.reason(), {info.metadata().begin(), info.metadata().end()}};
}

}  // namespace cairn
