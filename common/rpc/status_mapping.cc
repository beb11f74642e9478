#include "common/rpc/status_mapping.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/identity/frame.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/retry_status.h"
#include "google/rpc/status.pb.h"

namespace cairn {
namespace {

constexpr int kCodeLast = static_cast<int>(grpc::StatusCode::UNAUTHENTICATED);
constexpr size_t kReasonBytesMax = 64;
constexpr char kCutMark[] = " [cut]";

bool IsUtf8Continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

std::string CleanMessage(absl::string_view message) {
  std::string clean(message.substr(0, kStatusMessageBytesMax));
  if (message.size() > kStatusMessageBytesMax) {
    size_t end = kStatusMessageBytesMax - (sizeof(kCutMark) - 1);
    for (int i = 0; i < 3 && IsUtf8Continuation(clean[end]); ++i) --end;
    clean.resize(end);
    clean += kCutMark;
  }
  if (IsUtf8(clean)) return clean;
  for (char& byte : clean) {
    if (static_cast<uint8_t>(byte) >= 0x80) byte = '?';
  }
  return clean;
}

// `status` with the payloads that every status on the wire has.
absl::Status Completed(absl::Status status) {
  if (!ReasonOf(status)) status = WithReason(status, absl::StatusCodeToString(status.code()));
  if (absl::IsResourceExhausted(status) && !RetryAfter(status)) {
    status = WithRetryAfter(status, kRetryDelayDefault);
  }
  return status;
}

google::rpc::Status WireStatus(const absl::Status& status, const std::string& message) {
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  for (const char* type_url : {kErrorInfoTypeUrl, kRetryInfoTypeUrl}) {
    const auto payload = status.GetPayload(type_url);
    if (!payload) continue;
    google::protobuf::Any* const detail = wire.add_details();
    detail->set_type_url(type_url);
    detail->set_value(std::string(*payload));
  }
  return wire;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = CleanMessage(status.message());
  const absl::Status completed = Completed(status);
  google::rpc::Status wire = WireStatus(completed, message);
  if (wire.ByteSizeLong() > kStatusDetailsBytesMax) {
    const std::string reason = ReasonOf(completed)->reason;
    wire = WireStatus(WithReason(completed, absl::string_view(reason).substr(0, kReasonBytesMax)),
                      message);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      wire.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = static_cast<int>(status.error_code());
  const bool known = code > 0 && code <= kCodeLast;
  absl::Status result(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      status.error_message());
  google::rpc::Status wire;
  if (!wire.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& detail : wire.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace cairn
