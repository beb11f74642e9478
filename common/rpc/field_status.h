// Statuses that say which field of a request is wrong.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

// `status` with "field: " before its message; its code and payloads stay. OK stays OK.
absl::Status InField(absl::string_view field, const absl::Status& status);

}  // namespace cairn
