#include "cache_node/tiers/disk/payload_database.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/place_key.h"
#include "cache_node/tiers/disk/rocksdb_status.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_reader.h"

namespace cairn::node {
namespace {

namespace fs = std::filesystem;

absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// What taking in anew can mend.
bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

std::vector<std::string> SortedFilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".sst") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::Status FromSystem(const std::error_code& error, absl::string_view what) {
  if (!error) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", error.message());
  if (error == std::errc::no_space_on_device) return absl::ResourceExhaustedError(message);
  return absl::UnavailableError(message);
}

// Which file it is, from its first key and its footer.
absl::StatusOr<uint64_t> FileOf(absl::string_view first, absl::string_view last) {
  if (first.size() == kPlaceKeyBytes && last.size() == kPlaceKeyBytes) {
    const DiskPlace begin = ParseRecordKey(first), end = ParseRecordKey(last);
    if (begin.file == end.file && begin.file > 0 && end.slot == kFooterSlot) return begin.file;
  }
  return absl::DataLossError("not a file of a disk tier");
}

absl::StatusOr<uint64_t> FileAt(const std::string& path, const rocksdb::Options& options) {
  rocksdb::SstFileReader reader(options);
  const rocksdb::Status opened = reader.Open(path);
  if (!opened.ok()) return FromRocksDb(opened, path);
  const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator(RecordReadOptions()));
  it->SeekToFirst();
  if (!it->Valid()) return absl::DataLossError(absl::StrCat(path, ": no first record"));
  const std::string first = it->key().ToString();
  it->SeekToLast();
  if (!it->Valid()) return absl::DataLossError(absl::StrCat(path, ": no last record"));
  return FileOf(first, View(it->key()));
}

absl::Status DropRange(rocksdb::DB* db, const rocksdb::Slice& first, const rocksdb::Slice& last) {
  return FromRocksDb(rocksdb::DeleteFilesInRange(db, db->DefaultColumnFamily(), &first, &last),
                     "dropping a file");
}

absl::Status DropFrom(rocksdb::DB* db, uint64_t file) {
  const std::string first = RecordKey({file, 0}), last = FooterKey(file);
  return DropRange(db, first, last);
}

}  // namespace

PayloadDatabase::PayloadDatabase(std::string path, std::string rebuild_path,
                                 const RocksDbSettings& settings, FileTable* table)
    : rebuild_path_(std::move(rebuild_path)),
      options_(PayloadOptions(settings)),
      table_(table),
      db_(std::move(path), options_) {}

absl::Status PayloadDatabase::Open() {
  const auto prepare = [this](rocksdb::DB* db) { return Prepare(db); };
  if (LostItsManifest()) {
    if (absl::Status status = MoveAside(); !status.ok()) return status;
  }
  absl::Status status = db_.Open(prepare);
  if (!IsDamage(status)) return status;
  if (status = MoveAside(); !status.ok()) return status;
  return db_.Open(prepare);
}

absl::Status PayloadDatabase::Ingest(const std::string& path, FileTable::File file,
                                     uint64_t reserved) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  absl::Status status = FromRocksDb((*db)->IngestExternalFile({path}, IngestOptions()), path);
  if (status.ok()) table_->Add(file, reserved);
  return status;
}

absl::Status PayloadDatabase::Drop(uint64_t file) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  absl::Status status = DropFrom(db->get(), file);
  if (status.ok()) table_->Remove(file);
  return status;
}

absl::Status PayloadDatabase::Get(const std::string& key,
                                  absl::FunctionRef<absl::Status(absl::string_view)> use) {
  const absl::StatusOr<RocksDatabase::Use> db = db_.Enter();
  if (!db.ok()) return db.status();
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      (*db)->Get(RecordReadOptions(), (*db)->DefaultColumnFamily(), key, &value);
  if (!status.ok()) return FromRocksDb(status, "reading");
  return use(View(value));
}

// RocksDB would begin a new database and delete the files.
bool PayloadDatabase::LostItsManifest() const {
  std::error_code error;
  return !fs::exists(db_.path() + "/CURRENT", error) && !SortedFilesIn(db_.path()).empty();
}

absl::Status PayloadDatabase::MoveAside() {
  std::error_code error;
  fs::create_directories(rebuild_path_, error);
  for (const std::string& path : SortedFilesIn(db_.path())) {
    const std::string name = fs::path(path).filename().string();
    std::string target;
    for (int i = 0; target.empty() || fs::exists(target, error); ++i) {
      target = absl::StrCat(rebuild_path_, "/", i, "-", name);
    }
    fs::rename(path, target, error);
    if (error) return FromSystem(error, path);
  }
  fs::remove_all(db_.path(), error);
  return FromSystem(error, db_.path());
}

absl::Status PayloadDatabase::Prepare(rocksdb::DB* db) {
  if (absl::Status status = TakeInAgain(db); !status.ok()) return status;
  std::vector<FileTable::File> files;
  if (absl::Status status = ListFiles(db, &files); !status.ok()) return status;
  for (uint64_t unknown : table_->SetFound(files)) {
    if (absl::Status status = DropFrom(db, unknown); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Also what a process left that was killed while it did this.
absl::Status PayloadDatabase::TakeInAgain(rocksdb::DB* db) {
  std::error_code error;
  for (const std::string& path : SortedFilesIn(rebuild_path_)) {
    const absl::Status status = TakeInFile(db, path);
    if (!status.ok() && !IsDamage(status)) return status;
    if (!status.ok()) damaged_files_.fetch_add(1, std::memory_order_relaxed);
    fs::remove(path, error);
  }
  fs::remove_all(rebuild_path_, error);
  return absl::OkStatus();
}

absl::Status PayloadDatabase::TakeInFile(rocksdb::DB* db, const std::string& path) {
  const absl::StatusOr<uint64_t> file = FileAt(path, options_);
  if (!file.ok()) return file.status();
  rocksdb::PinnableSlice footer;
  const rocksdb::Status there =
      db->Get(RecordReadOptions(), db->DefaultColumnFamily(), FooterKey(*file), &footer);
  if (!there.IsNotFound()) return FromRocksDb(there, path);
  const rocksdb::Status taken = db->IngestExternalFile({path}, IngestOptions());
  // It is sound as a file, but not one that could be here.
  if (taken.IsInvalidArgument() || taken.IsNotSupported()) {
    return absl::DataLossError(taken.ToString());
  }
  return FromRocksDb(taken, path);
}

absl::Status PayloadDatabase::ListFiles(rocksdb::DB* db, std::vector<FileTable::File>* files) {
  std::vector<rocksdb::LiveFileMetaData> live;
  db->GetLiveFilesMetaData(&live);
  for (const rocksdb::LiveFileMetaData& data : live) {
    const absl::StatusOr<uint64_t> file = FileOf(data.smallestkey, data.largestkey);
    if (file.ok()) {
      files->push_back({*file, data.size});
      continue;
    }
    damaged_files_.fetch_add(1, std::memory_order_relaxed);
    absl::Status status = DropRange(db, data.smallestkey, data.largestkey);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
