// NodeCalls: pins by wish.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/pin_time.h"
#include "cache_node/service/store_messages.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"

namespace cairn::node {

absl::StatusOr<int64_t> PinUntil(uint64_t pin_ms, absl::Time wall) {
  if (pin_ms > kPinMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("pin_ms: ", pin_ms, ", at most ", kPinMsMax, " (7 days); pin again to go on"));
  }
  return pin_ms == 0 ? int64_t{0} : absl::ToUnixMillis(wall) + static_cast<int64_t>(pin_ms);
}

absl::Status NodeCalls::PinBlocks(const Caller& caller, const v1::PinBlocksRequest& request,
                                  v1::PinBlocksResponse* response) {
  if (absl::Status status = Admit(caller.tenant); !status.ok()) return status;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(request.keys(), "keys", kKeysPerPinMax);
  if (!keys.ok()) return keys.status();
  if (absl::Status status = CheckCount("keys", keys->size(), kKeysPerPinMax); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckNoDuplicates(*keys, "keys"); !status.ok()) return status;
  const absl::StatusOr<int64_t> until = PinUntil(request.pin_ms(), parts_.clock->WallNow());
  if (!until.ok()) return until.status();
  const std::vector<StayOutcome> outcomes =
      parts_.store->Stay(caller.tenant, KnownOrNone(caller.tenant, *fingerprint), *keys, *until);
  CAIRN_CHECK(outcomes.size() == keys->size());
  for (const StayOutcome outcome : outcomes) {
    response->add_outcomes(static_cast<v1::PinOutcome>(outcome));
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
