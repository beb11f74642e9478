#include "cache_node/service/generic_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/refusal.h"

namespace cairn::node {
namespace {

constexpr absl::string_view kWriteMethod = "/cairn.v1.CacheNode/Write";

using Refused = Refusal<grpc::ServerGenericBidiReactor>;

}  // namespace

grpc::ServerGenericBidiReactor* GenericService::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (context->method() == kWriteMethod) return StartWrite(*context);
  const std::string method = context->method().substr(0, 128);
  return new Refused(absl::UnimplementedError(absl::StrCat("this node has no method ", method)),
                     parts_.metrics->Begin(RpcMethod::kUnknown));
}

grpc::ServerGenericBidiReactor* GenericService::StartWrite(
    const grpc::GenericCallbackServerContext& context) {
  RpcMetrics::Call call = parts_.metrics->Begin(RpcMethod::kWrite);
  auto rights = std::make_unique<StreamRights>(parts_.callers, &context, "CacheNode/Write");
  if (!rights->caller().ok()) return new Refused(rights->caller().status(), std::move(call));
  return WriteStream::Start(parts_.write, std::move(rights), next_writer_.fetch_add(1),
                            std::move(call));
}

}  // namespace cairn::node
