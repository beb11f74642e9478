#include "cache_node/tiers/disk/rocksdb_status.h"

#include "absl/strings/str_cat.h"

namespace cairn::node {

absl::Status FromRocksDb(const rocksdb::Status& status, absl::string_view what) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", status.ToString());
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(message);
  if (status.IsNotFound() || status.IsPathNotFound()) return absl::NotFoundError(message);
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace cairn::node
