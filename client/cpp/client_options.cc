#include "client/cpp/client_options.h"

#include "absl/strings/str_cat.h"
#include "common/rpc/field_status.h"
#include "common/rpc/target.h"

namespace cairn {

absl::Status ValidateClientOptions(const ClientOptions& options) {
  if (const absl::Status status = ValidateTarget(options.target); !status.ok()) {
    return InField("target", status);
  }
  if (options.data_channels < 1 || options.data_channels > kDataChannelsMax) {
    return absl::InvalidArgumentError(absl::StrCat("data_channels: ", options.data_channels,
                                                   "; must be 1 to ", kDataChannelsMax));
  }
  if (options.control_timeout <= absl::ZeroDuration() ||
      options.data_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("control_timeout and data_timeout must be positive");
  }
  return ValidateRetryOptions(options.retry);
}

}  // namespace cairn
