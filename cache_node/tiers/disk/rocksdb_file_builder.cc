#include "cache_node/tiers/disk/rocksdb_file_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cache_node/tiers/disk/place_key.h"
#include "cache_node/tiers/disk/record_format.h"
#include "cache_node/tiers/disk/rocksdb_status.h"
#include "common/base/check.h"
#include "common/base/give_way.h"

namespace cairn::node {
namespace {

// More than RocksDB adds: to a record its key, its block's trailer and the index entry; to a file
// the index, properties and footer, and what direct I/O rounds up.
constexpr uint64_t kBytesPerRecord = 96;
constexpr uint64_t kBytesPerFile = uint64_t{16} << 10;

}  // namespace

RocksDbFileBuilder::RocksDbFileBuilder(DiskParts* parts, uint64_t file)
    : parts_(parts),
      file_(file),
      path_(absl::StrFormat("%s/%020d.sst", parts->directory->staging(), file)),
      directory_(file) {}

RocksDbFileBuilder::~RocksDbFileBuilder() {
  if (!ended_) GiveUp();
}

absl::Status RocksDbFileBuilder::Start() {
  broken_ = Reserve(std::max(parts_->files.charge_min(), kBytesPerFile));
  NoteWrite(parts_, broken_);
  return broken_;
}

absl::Status RocksDbFileBuilder::Open(uint64_t record_bytes) {
  writer_.emplace(FileWriterOptions(parts_->settings),
                  PayloadFileOptions(parts_->settings, record_bytes));
  return FromRocksDb(writer_->Open(path_), path_);
}

absl::StatusOr<DiskPlace> RocksDbFileBuilder::Add(const DiskRecord& record) {
  CAIRN_CHECK(!ended_ && record.scope != nullptr);
  if (!broken_.ok()) return broken_;
  absl::Status status = parts_->health.AdmitWrite();
  if (!status.ok()) return status;
  const uint64_t scope_bytes = kDirectoryScopeBytes + record.scope->tenant.size() +
                               record.scope->adapter.size() + record.scope->salt.size();
  status = Reserve(RecordHeadBytes(record) + record.payload.size() + kDirectoryEntryBytes +
                   scope_bytes + kBytesPerRecord);
  if (!status.ok()) {
    NoteWrite(parts_, status);
    return status;
  }
  const DiskPlace place{file_, directory_.entries()};
  CAIRN_CHECK(place.slot < kFooterSlot);
  value_.clear();
  AppendRecordHead(record, place, &value_);
  value_.append(reinterpret_cast<const char*>(record.payload.data()), record.payload.size());
  GiveWay();
  const std::string key = RecordKey(place);
  if (!writer_.has_value()) broken_ = Open(key.size() + value_.size());
  if (broken_.ok()) broken_ = Put(key, value_);
  GiveWay();
  if (broken_.ok()) {
    directory_.Add(*record.scope, record.block);
    if (directory_.chunk_is_full()) broken_ = PutChunk();
  }
  NoteWrite(parts_, broken_);
  if (!broken_.ok()) return broken_;
  return place;
}

absl::Status RocksDbFileBuilder::Finish() {
  CAIRN_CHECK(!ended_);
  absl::Status status = broken_;
  if (status.ok()) status = parts_->health.AdmitRead();
  if (!status.ok() || directory_.entries() == 0) {
    GiveUp();
    return status;
  }
  status = parts_->directory->CheckHeld();
  if (status.ok()) status = WriteAndIngest();
  NoteWrite(parts_, status);
  if (status.ok()) {
    ended_ = true;
  } else {
    GiveUp();
  }
  return status;
}

absl::Status RocksDbFileBuilder::WriteAndIngest() {
  absl::Status status;
  if (!directory_.chunk_is_empty()) status = PutChunk();
  if (status.ok()) status = Put(FooterKey(file_), DirectoryFooter(file_, directory_.entries()));
  if (!status.ok()) return status;
  rocksdb::ExternalSstFileInfo info;
  status = FromRocksDb(writer_->Finish(&info), path_);
  if (!status.ok()) return status;
  status = parts_->payload.Ingest(path_, {file_, info.file_size}, reserved_);
  if (status.ok()) {
    parts_->written_bytes.fetch_add(info.file_size, std::memory_order_relaxed);
    return status;
  }
  // RocksDB may have it all the same. Its records are not there for anybody, nor after a restart.
  parts_->ledger.MarkDead({{DiskPlace{file_, kFooterSlot}}}).IgnoreError();
  return status;
}

// What is not finished leaves nothing: not here, and not where a start finds it.
void RocksDbFileBuilder::GiveUp() {
  ended_ = true;
  parts_->settings.env->DeleteFile(path_).PermitUncheckedError();
  parts_->files.Release(reserved_);
  reserved_ = 0;
}

absl::Status RocksDbFileBuilder::Reserve(uint64_t bytes) {
  absl::Status status = ReserveRoom(parts_, bytes);
  if (status.ok()) reserved_ += bytes;
  return status;
}

absl::Status RocksDbFileBuilder::Put(const std::string& key, const std::string& value) {
  return FromRocksDb(writer_->Put(key, value), path_);
}

absl::Status RocksDbFileBuilder::PutChunk() {
  const DiskPlace last{file_, directory_.entries() - 1};
  return Put(ChunkKey(last), directory_.TakeChunk());
}

}  // namespace cairn::node
