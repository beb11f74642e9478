#include "cache_node/service/stream_rights.h"

#include "absl/strings/str_cat.h"

namespace cairn::node {

StreamRights::StreamRights(const CallerResolver* callers, const grpc::ServerContextBase* context,
                           absl::string_view method)
    : callers_(callers),
      context_(context),
      method_(method),
      seen_(callers->Generation()),
      caller_(callers->Resolve(*context, method)) {}

absl::Status StreamRights::Check() const {
  const uint64_t generation = callers_->Generation();
  if (generation == seen_.load(std::memory_order_relaxed)) return absl::OkStatus();
  const absl::StatusOr<Caller> now = callers_->Resolve(*context_, method_);
  if (!now.ok()) return now.status();
  if (now->id != caller_->id || now->tenant != caller_->tenant) {
    return absl::PermissionDeniedError(
        absl::StrCat("what ", caller_->id, " may do has changed; begin the call again"));
  }
  seen_.store(generation, std::memory_order_relaxed);
  return absl::OkStatus();
}

}  // namespace cairn::node
