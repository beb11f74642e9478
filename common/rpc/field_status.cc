#include "common/rpc/field_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace cairn {

absl::Status InField(absl::string_view field, const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(field, ": ", status.message()));
  status.ForEachPayload([&result](absl::string_view type_url, const absl::Cord& payload) {
    result.SetPayload(type_url, payload);
  });
  return result;
}

}  // namespace cairn
