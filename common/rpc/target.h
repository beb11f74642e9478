// Where a client connects to: "host:port", "[v6]:port" or "unix:/path".
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

// INVALID_ARGUMENT naming `target`, what is wrong with it, and the forms that are accepted. gRPC
// itself takes anything: 127.0.0.1:99999 it reads as port 34463, and what has a scheme or no port
// it looks for for ever. A host is a name or numeric; it is not resolved here.
absl::Status ValidateTarget(absl::string_view target);

}  // namespace cairn
