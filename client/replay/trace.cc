#include "client/replay/trace.h"

#include <utility>

namespace cairn::replay {

absl::StatusOr<std::optional<TraceRequest>> TraceReader::Next() {
  while (failure_.ok()) {
    absl::StatusOr<std::optional<TraceRequest>> request = Read();
    if (!request.ok()) {
      failure_ = request.status();
      break;
    }
    if (!request->has_value()) return request;
    TraceRequest& read = **request;
    if (!first_arrival_s_.has_value()) first_arrival_s_ = read.arrival_s;
    read.arrival_s -= *first_arrival_s_;
    if (read.prompt.token_count() > 0) return request;
    ++empty_requests_;
  }
  return failure_;
}

}  // namespace cairn::replay
