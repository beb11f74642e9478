#include "cache_node/tiers/disk/rocksdb_status.h"

#include "absl/strings/str_cat.h"

namespace cairn::node {

absl::Status FromRocksDb(const rocksdb::Status& status, absl::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", status.ToString());
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
  if (status.IsNotFound() || status.IsPathNotFound()) return absl::NotFoundError(message);
  // What another version wrote is no more use than what is damaged.
  if (status.IsCorruption() || status.IsNotSupported() || status.IsInvalidArgument()) {
    return absl::DataLossError(message);
  }
  return absl::UnavailableError(message);
}

}  // namespace cairn::node
