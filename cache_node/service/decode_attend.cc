#include "cache_node/service/decode_attend.h"

#include <algorithm>
#include <utility>

#include "cache_node/decode/engine/item_checks.h"
#include "cache_node/service/decode_calls.h"
#include "cache_node/service/decode_messages.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/status_mapping.h"

namespace cairn::node {

grpc::ServerUnaryReactor* DecodeAttend::Start(const Parts& parts, const Caller& caller,
                                              const PayloadMap& map,
                                              const v1::AttendRequest& request,
                                              v1::AttendResponse* response, RpcMetrics::Call call) {
  auto* const attend = new DecodeAttend(parts, response, std::move(call));
  const absl::Status status = attend->Begin(caller, map, request);
  if (!status.ok()) attend->End(status);
  return attend;  // gRPC calls OnDone after it got this, not before.
}

absl::Status DecodeAttend::Begin(const Caller& caller, const PayloadMap& map,
                                 const v1::AttendRequest& request) {
  if (absl::Status count = CheckItemCount(request.items()); !count.ok()) return count;
  absl::StatusOr<AttendShape> shape = ShapeFromProto(map, request.parameters());
  if (!shape.ok()) return InField("parameters", shape.status());
  shape_ = *std::move(shape);
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(request.fingerprint());
  CAIRN_CHECK(fingerprint.has_value());
  step_.tenant = caller.tenant;
  step_.fingerprint = *fingerprint;
  step_.shape = &shape_;
  step_.layer = request.layer();
  ItemsFromProto(request.items(), /*sequences=*/false, &step_, response_->mutable_results());
  CheckItems(&step_);
  const uint64_t bytes =
      std::max<uint64_t>(step_.request_bytes, request.ByteSizeLong()) + step_.result_bytes;
  if (!parts_.bytes->Take(bytes)) return WithDecodeRetry(NoBytesLeft(*parts_.bytes));
  taken_bytes_ = bytes;
  const absl::Status status = parts_.engine->Submit(&step_);
  return status.ok() ? status : WithDecodeRetry(status);
}

void DecodeAttend::OnStepDone() {
  StatusesToProto(step_, response_->mutable_results());
  End(absl::OkStatus());
}

void DecodeAttend::End(const absl::Status& status) {
  parts_.bytes->Give(std::exchange(taken_bytes_, 0));
  call_.End(status.code());
  Finish(ToGrpcStatus(status));
}

}  // namespace cairn::node
