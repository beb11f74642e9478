#include "client/cpp/client_options.h"

#include "absl/strings/str_cat.h"

namespace cairn {

absl::Status ValidateClientOptions(const ClientOptions& options) {
  if (options.target.empty()) {
    return absl::InvalidArgumentError("target: empty; give host:port or unix:/path");
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
