#include "cache_node/tiers/disk/ledger_database.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/fence_pruning.h"
#include "cache_node/tiers/disk/ledger_format.h"
#include "cache_node/tiers/disk/rocksdb_status.h"
#include "rocksdb/write_batch.h"

namespace cairn::node {
namespace {

absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
rocksdb::Slice Slice(absl::string_view view) { return {view.data(), view.size()}; }

rocksdb::ReadOptions CheckedReads() {
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  return options;
}

// Visits the keys that begin with `prefix`, from `start` on, until `visit` says no or fails.
absl::Status Scan(rocksdb::DB* db, absl::string_view prefix, absl::string_view start,
                  absl::FunctionRef<absl::Status(rocksdb::Iterator*)> visit) {
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(CheckedReads()));
  for (it->Seek(Slice(start)); it->Valid() && absl::StartsWith(View(it->key()), prefix);
       it->Next()) {
    if (absl::Status status = visit(it.get()); !status.ok()) return status;
  }
  return FromRocksDb(it->status(), "reading the ledger");
}

absl::Status ScanKind(rocksdb::DB* db, const char& kind,
                      absl::FunctionRef<absl::Status(rocksdb::Iterator*)> visit) {
  const absl::string_view prefix(&kind, 1);
  return Scan(db, prefix, prefix, visit);
}

absl::StatusOr<std::string> ReadKey(rocksdb::DB* db, absl::string_view key) {
  std::string value;
  const rocksdb::Status status = db->Get(CheckedReads(), Slice(key), &value);
  if (!status.ok()) return FromRocksDb(status, "reading the ledger");
  return value;
}

// NOT_FOUND when it was never written.
absl::StatusOr<uint64_t> ReadNumber(rocksdb::DB* db, absl::string_view key) {
  const absl::StatusOr<std::string> written = ReadKey(db, key);
  if (!written.ok()) return written.status();
  return ParseNumber(*written);
}

absl::Status ReadFrom(rocksdb::DB* db, DiskTier::Ledger* ledger) {
  absl::Status status = ScanKind(db, kNamespaceKeys, [ledger](rocksdb::Iterator* it) {
    absl::StatusOr<DiskTier::KnownNamespace> known =
        ParseNamespace(View(it->key()), View(it->value()));
    if (known.ok()) ledger->namespaces.push_back(*std::move(known));
    return known.status();
  });
  if (!status.ok()) return status;
  const absl::StatusOr<uint64_t> dead_up_to = ReadNumber(db, kDeadUpToKey);
  if (!dead_up_to.ok() && !absl::IsNotFound(dead_up_to.status())) return dead_up_to.status();
  ledger->dead_up_to = dead_up_to.ok() ? *dead_up_to : 0;
  return ScanKind(db, kFenceKeys, [ledger](rocksdb::Iterator* it) {
    absl::StatusOr<DiskTier::Fence> fence = ParseFence(View(it->key()), View(it->value()));
    if (fence.ok()) ledger->fences.push_back(*std::move(fence));
    return fence.status();
  });
}

rocksdb::WriteOptions Synced() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

}  // namespace

class LedgerDatabase::Turn {
 public:
  explicit Turn(LedgerDatabase* ledger) : ledger_(ledger) {
    absl::MutexLock lock(&ledger_->mutex_);
    ledger_->mutex_.Await(absl::Condition(
        +[](bool* taken) { return !*taken; }, &ledger_->turn_taken_));
    ledger_->turn_taken_ = true;
  }
  ~Turn() {
    absl::MutexLock lock(&ledger_->mutex_);
    ledger_->turn_taken_ = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  LedgerDatabase* const ledger_;
};

LedgerDatabase::LedgerDatabase(std::string path, const RocksDbSettings& settings)
    : db_(std::move(path), LedgerOptions(settings)) {}

absl::Status LedgerDatabase::Open(const std::string& identity, bool is_new) {
  return db_.Open([&](rocksdb::DB* db) { return Check(db, identity, is_new); });
}

absl::Status LedgerDatabase::Check(rocksdb::DB* db, const std::string& identity, bool is_new) {
  absl::StatusOr<std::string> found = ReadKey(db, kIdentityKey);
  if (is_new && absl::IsNotFound(found.status())) {
    const rocksdb::Status put = db->Put(Synced(), Slice(kIdentityKey), identity);
    if (!put.ok()) return FromRocksDb(put, "writing the ledger");
    found = identity;
  }
  if (absl::IsNotFound(found.status()) || (found.ok() && *found != identity)) {
    return absl::DataLossError("the ledger is not this directory's");
  }
  if (!found.ok()) return found.status();
  DiskTier::Ledger ledger;
  if (absl::Status status = ReadFrom(db, &ledger); !status.ok()) return status;
  const absl::StatusOr<uint64_t> written = ReadNumber(db, kFileLimitKey);
  if (!written.ok() && !absl::IsNotFound(written.status())) return written.status();
  const uint64_t limit = written.ok() ? *written : 1;
  // Also when the ledger was begun anew meanwhile: the next number is taken from a range of its
  // own.
  absl::MutexLock lock(&mutex_);
  file_limit_ = next_file_ = std::max(next_file_, limit);
  return absl::OkStatus();
}

absl::StatusOr<DiskTier::Ledger> LedgerDatabase::Read() {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  DiskTier::Ledger ledger;
  if (absl::Status status = ReadFrom(db->get(), &ledger); !status.ok()) return status;
  return ledger;
}

absl::Status LedgerDatabase::PutNamespace(const DiskTier::KnownNamespace& known) {
  if (absl::Status status = ValidateNamespace(known.fields); !status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Put(NamespaceKey(known.tenant, known.name), NamespaceValue(known.fields));
  return Write(&batch);
}

absl::Status LedgerDatabase::PutFence(const DiskTier::Fence& put) {
  const Turn turn(this);
  DiskTier::Fence fence = put;
  if (absl::Status status = RaiseToKept(&fence); !status.ok()) return status;
  rocksdb::WriteBatch batch;
  batch.Put(FenceKey(fence), FenceValue(fence));
  if (fence.tenant.empty()) {
    const absl::StatusOr<DiskTier::Ledger> ledger = Read();
    if (!ledger.ok()) return ledger.status();
    for (const DiskTier::KnownNamespace& known : ledger->namespaces) {
      const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(known.fields);
      if (!fingerprint.ok() || *fingerprint != fence.fingerprint) continue;
      batch.Delete(NamespaceKey(known.tenant, known.name));
    }
  }
  return Write(&batch);
}

absl::Status LedgerDatabase::RaiseToKept(DiskTier::Fence* fence) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  const std::string key = FenceKey(*fence);
  const absl::StatusOr<std::string> value = ReadKey(db->get(), key);
  if (absl::IsNotFound(value.status())) return absl::OkStatus();
  if (!value.ok()) return value.status();
  const absl::StatusOr<DiskTier::Fence> kept = ParseFence(key, *value);
  if (!kept.ok()) return kept.status();
  fence->sequence = std::max(fence->sequence, kept->sequence);
  fence->epoch = std::max(fence->epoch, kept->epoch);
  return absl::OkStatus();
}

absl::Status LedgerDatabase::PruneFences(uint64_t below, size_t fences_max) {
  const Turn turn(this);
  absl::StatusOr<DiskTier::Ledger> ledger = Read();
  if (!ledger.ok()) return ledger.status();
  const FencePruning pruning = FencePruning::Of(std::move(ledger->fences), below, fences_max);
  if (pruning.forgotten.empty()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  for (const DiskTier::Fence& fence : pruning.forgotten) batch.Delete(FenceKey(fence));
  if (pruning.dead_up_to > ledger->dead_up_to) {
    batch.Put(Slice(kDeadUpToKey), NumberValue(pruning.dead_up_to));
  }
  return Write(&batch);
}

absl::Status LedgerDatabase::MarkDead(absl::Span<const DiskPlace> places) {
  if (places.empty()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  for (const DiskPlace& place : places) batch.Put(DeadKey(place), {});
  return Write(&batch);
}

absl::StatusOr<std::vector<uint32_t>> LedgerDatabase::DeadOf(uint64_t file) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  std::vector<uint32_t> slots;
  const std::string start = DeadKey({file, 0});
  const absl::string_view prefix = absl::string_view(start).substr(0, start.size() - 4);
  absl::Status status = Scan(db->get(), prefix, start, [&slots](rocksdb::Iterator* it) {
    const absl::StatusOr<DiskPlace> place = ParseDead(View(it->key()));
    if (place.ok()) slots.push_back(place->slot);
    return place.status();
  });
  if (!status.ok()) return status;
  return slots;
}

absl::Status LedgerDatabase::ForgetDeadOf(uint64_t file) {
  const absl::StatusOr<std::vector<uint32_t>> slots = DeadOf(file);
  if (!slots.ok()) return slots.status();
  if (slots->empty()) return absl::OkStatus();
  rocksdb::WriteBatch batch;
  for (uint32_t slot : *slots) batch.Delete(DeadKey({file, slot}));
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  return FromRocksDb((*db)->Write(rocksdb::WriteOptions(), &batch), "writing the ledger");
}

absl::Status LedgerDatabase::ForgetDeadUnless(absl::FunctionRef<bool(uint64_t)> is_there) {
  std::vector<uint64_t> gone;
  {
    const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
    if (!db.ok()) return db.status();
    absl::Status status = ScanKind(db->get(), kDeadKeys, [&](rocksdb::Iterator* it) {
      const absl::StatusOr<DiskPlace> place = ParseDead(View(it->key()));
      if (!place.ok()) return place.status();
      if (!is_there(place->file) && (gone.empty() || gone.back() != place->file)) {
        gone.push_back(place->file);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
  }
  for (uint64_t file : gone) {
    if (absl::Status status = ForgetDeadOf(file); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> LedgerDatabase::TakeFileNumber() {
  const Turn turn(this);
  uint64_t limit = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (next_file_ < file_limit_) return next_file_++;
    limit = file_limit_ + kFileNumbersPerRange;
  }
  rocksdb::WriteBatch batch;
  batch.Put(Slice(kFileLimitKey), NumberValue(limit));
  if (absl::Status status = Write(&batch); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  file_limit_ = limit;
  return next_file_++;
}

absl::Status LedgerDatabase::Probe() {
  rocksdb::WriteBatch batch;
  batch.Put(Slice(kProbeKey), {});
  return Write(&batch);
}

absl::Status LedgerDatabase::Write(rocksdb::WriteBatch* batch) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  return FromRocksDb((*db)->Write(Synced(), batch), "writing the ledger");
}

}  // namespace cairn::node
