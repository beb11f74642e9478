#include "cache_node/tiers/disk/rocks_database.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/rocksdb_status.h"
#include "common/base/check.h"

namespace cairn::node {

RocksDatabase::Use::~Use() {
  if (owner_ != nullptr) owner_->Leave();
}

RocksDatabase::RocksDatabase(std::string path, const rocksdb::Options& options)
    : path_(std::move(path)), options_(options) {}

RocksDatabase::~RocksDatabase() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(uses_ == 0);
}

absl::Status RocksDatabase::Open(absl::FunctionRef<absl::Status(rocksdb::DB*)> prepare) {
  {
    absl::MutexLock lock(&mutex_);
    if (db_ != nullptr) return absl::OkStatus();
  }
  rocksdb::DB* raw = nullptr;
  absl::Status status = FromRocksDb(rocksdb::DB::Open(options_, path_, &raw), path_);
  std::unique_ptr<rocksdb::DB> db(raw);
  if (status.ok()) status = prepare(db.get());
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  db_ = std::move(db);
  return status;
}

absl::StatusOr<RocksDatabase::Use> RocksDatabase::Enter() {
  absl::MutexLock lock(&mutex_);
  if (db_ == nullptr || closing_) {
    return absl::UnavailableError(absl::StrCat(path_, " is not open"));
  }
  ++uses_;
  return Use(this, db_.get());
}

absl::Status RocksDatabase::Close(absl::Duration timeout) {
  std::unique_ptr<rocksdb::DB> db;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    const bool idle = mutex_.AwaitWithTimeout(absl::Condition(
                                                  +[](int* uses) { return *uses == 0; }, &uses_),
                                              timeout);
    closing_ = false;
    if (!idle) {
      return absl::UnavailableError(absl::StrCat(path_, ": ", uses_, " calls hang on the disk"));
    }
    db = std::move(db_);
  }
  return absl::OkStatus();  // Closed here, outside the lock.
}

absl::Status RocksDatabase::ResumeOrClose(absl::Duration timeout) {
  {
    const absl::StatusOr<Use> db = Enter();
    if (!db.ok()) return absl::OkStatus();
    if ((*db)->Resume().ok()) return absl::OkStatus();
  }
  return Close(timeout);
}

void RocksDatabase::Leave() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(uses_ > 0);
  --uses_;
}

}  // namespace cairn::node
