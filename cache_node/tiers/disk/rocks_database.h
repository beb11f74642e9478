// RocksDatabase: one RocksDB database that can be closed and opened again under its users.
//
// A Use holds it open; close waits, within a bound, for all of them to end and lets no new one in.
// That is how an error that RocksDB does not get over by itself is mended without a restart of the
// process. Thread-safe. Uses must not outlive it.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace cairn::node {

class RocksDatabase {
 public:
  // Move-only; the database stays open while it lives.
  class Use {
   public:
    Use(Use&& other) noexcept : owner_(other.owner_), db_(other.db_) { other.owner_ = nullptr; }
    Use& operator=(Use&&) = delete;
    ~Use();

    rocksdb::DB* operator->() const { return db_; }
    rocksdb::DB* get() const { return db_; }

   private:
    friend class RocksDatabase;
    Use(RocksDatabase* owner, rocksdb::DB* db) : owner_(owner), db_(db) {}

    RocksDatabase* owner_;
    rocksdb::DB* db_;
  };

  // Not open yet.
  RocksDatabase(std::string path, const rocksdb::Options& options);
  // REQUIRES: no Use lives.
  ~RocksDatabase();

  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  const std::string& path() const { return path_; }

  // Opens it, unless it is open; nobody can enter before `prepare` has answered OK, and an error of
  // it closes again. One call at a time.
  absl::Status Open(absl::FunctionRef<absl::Status(rocksdb::DB*)> prepare);
  // UNAVAILABLE when it is not open.
  absl::StatusOr<Use> Enter();
  // Closed when OK; UNAVAILABLE, and still open, when uses have not ended after `timeout`.
  absl::Status Close(absl::Duration timeout);
  // Gets over a background error without closing, or closes it, to be opened again.
  absl::Status ResumeOrClose(absl::Duration timeout);

 private:
  void Leave();

  const std::string path_;
  const rocksdb::Options options_;

  mutable absl::Mutex mutex_;
  // Changes only while there are no uses.
  std::unique_ptr<rocksdb::DB> db_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace cairn::node
