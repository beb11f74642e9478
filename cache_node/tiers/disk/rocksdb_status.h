// What RocksDB's status means in the words of DiskTier. Thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rocksdb/status.h"

namespace cairn::node {

// RESOURCE_EXHAUSTED no room on the disk; NOT_FOUND no such file or key; DATA_LOSS damage;
// UNAVAILABLE everything else, as a device error. `what` begins the message.
absl::Status FromRocksDb(const rocksdb::Status& status, absl::string_view what);

}  // namespace cairn::node
