#include "cache_node/tiers/disk/rocksdb_disk_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/directory_format.h"
#include "cache_node/tiers/disk/place_key.h"
#include "cache_node/tiers/disk/record_format.h"
#include "cache_node/tiers/disk/rocksdb_file_builder.h"
#include "cache_node/tiers/disk/rocksdb_status.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kCloseTimeout = absl::Seconds(5);
constexpr size_t kProbeBytes = 4096;
// Of a table reader without its index, which is cached.
constexpr uint64_t kBytesPerOpenFile = uint64_t{32} << 10;
// A builder's or a read's buffers beside the record, copies of which RocksDB holds.
constexpr uint64_t kBufferBytes = 2 * kFileBufferBytes;
constexpr uint64_t kRecordCopies = 3;

absl::Status At(DiskPlace place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("record ", place.slot, " of file ", place.file,
                                                  ": ", status.message()));
}

}  // namespace

RocksDbDiskTier::RocksDbDiskTier(std::unique_ptr<rocksdb::Env> env,
                                 std::unique_ptr<DiskParts> parts)
    : env_(std::move(env)), parts_(std::move(parts)) {}

RocksDbDiskTier::~RocksDbDiskTier() = default;

absl::StatusOr<std::unique_ptr<RocksDbDiskTier>> RocksDbDiskTier::Open(
    const RocksDbDiskTierOptions& options) {
  if (options.bytes_max < kBytesMaxLeast) {
    return absl::InvalidArgumentError(
        absl::StrCat("a disk tier of ", options.bytes_max, " bytes; at least ", kBytesMaxLeast));
  }
  absl::StatusOr<std::unique_ptr<DiskDirectory>> directory = DiskDirectory::Open(options.directory);
  if (!directory.ok()) return directory.status();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
      options.file_system != nullptr ? options.file_system : rocksdb::FileSystem::Default());
  RocksDbSettings settings;
  settings.env = env.get();
  settings.direct_io = (*directory)->SupportsDirectIo();
  settings.index_cache_bytes = options.index_cache_bytes;
  settings.open_files_max = options.open_files_max;
  auto parts = std::make_unique<DiskParts>(*std::move(directory), settings,
                                           options.bytes_max - kOverheadBytes);
  std::unique_ptr<RocksDbDiskTier> tier(new RocksDbDiskTier(std::move(env), std::move(parts)));
  // A disk that fails now may do so for a while; one that is full is found out by the next write.
  const absl::Status loaded = tier->Load();
  if (!loaded.ok()) {
    tier->parts_->health.NoteWrite(absl::UnavailableError(loaded.message()));
  }
  return tier;
}

uint64_t RocksDbDiskTier::MemoryBytesMax(const RocksDbDiskTierOptions& options, int builders,
                                         int reads, uint64_t record_bytes) {
  const uint64_t value_bytes = record_bytes + kRecordHeadBytesMax;
  return options.index_cache_bytes +
         static_cast<uint64_t>(options.open_files_max) * kBytesPerOpenFile +
         4 * kLedgerMemtableBytes +
         static_cast<uint64_t>(builders + reads) * (kRecordCopies * value_bytes + kBufferBytes);
}

absl::Status RocksDbDiskTier::Load() {
  if (absl::Status status = parts_->directory->CheckHeld(); !status.ok()) return status;
  if (loaded_) {
    if (absl::Status status = parts_->ledger.Mend(kCloseTimeout); !status.ok()) return status;
    if (absl::Status status = parts_->payload.Mend(kCloseTimeout); !status.ok()) return status;
  }
  absl::Status status = OpenParts();
  // Opening writes a little too.
  if (absl::IsResourceExhausted(status) && parts_->ballast.Release()) status = OpenParts();
  return status;
}

absl::Status RocksDbDiskTier::OpenParts() {
  if (!prepared_) {
    if (absl::Status status = parts_->directory->Prepare(); !status.ok()) return status;
    const uint64_t set_aside = parts_->directory->SetAsideBytes();
    if (parts_->files.Reserve(set_aside).ok()) {
      parts_->set_aside_bytes.store(set_aside);
    } else if (absl::Status status = parts_->directory->DeleteSetAside(); !status.ok()) {
      return status;
    }
    prepared_ = true;
  }
  if (absl::Status status = OpenLedger(); !status.ok()) return status;
  if (absl::Status status = parts_->payload.Open(); !status.ok()) return status;
  if (loaded_) return absl::OkStatus();
  loaded_ = true;
  parts_->ballast.Fill().IgnoreError();  // A probe of a full disk tries again.
  return parts_->ledger.ForgetDeadUnless(
      [this](uint64_t file) { return parts_->files.Contains(file); });
}

// A ledger that cannot be read may miss fences: what it guards goes with it.
absl::Status RocksDbDiskTier::OpenLedger() {
  DiskDirectory& directory = *parts_->directory;
  absl::Status status = parts_->ledger.Open(directory.identity(), directory.is_new());
  if (absl::IsDataLoss(status) || absl::IsNotFound(status)) {
    parts_->damaged_files.fetch_add(1, std::memory_order_relaxed);
    if (status = parts_->payload.Close(kCloseTimeout); !status.ok()) return status;
    if (status = directory.Wipe(); !status.ok()) return status;
    status = parts_->ledger.Open(directory.identity(), directory.is_new());
  }
  if (!status.ok() || !directory.is_new()) return status;
  return directory.WriteFormat();
}

absl::StatusOr<std::unique_ptr<DiskFileBuilder>> RocksDbDiskTier::StartFile() {
  absl::Status status = parts_->health.AdmitWrite();
  if (!status.ok()) return status;
  if (status = parts_->directory->CheckHeld(); !status.ok()) {
    NoteWrite(parts_.get(), status);
    return status;
  }
  const absl::StatusOr<uint64_t> file = parts_->ledger.TakeFileNumber();
  if (!file.ok()) {
    NoteWrite(parts_.get(), file.status());
    return file.status();
  }
  auto builder = std::make_unique<RocksDbFileBuilder>(parts_.get(), *file);
  if (status = builder->Start(); !status.ok()) return status;
  return builder;
}

absl::Status RocksDbDiskTier::Read(DiskPlace place, const BlockKey& key,
                                   absl::Span<uint8_t> payload, DiskRecordFields* fields) {
  absl::Status status = parts_->health.AdmitRead();
  if (!status.ok()) return status;
  if (!parts_->files.Contains(place.file)) {
    return At(place, absl::NotFoundError("the file is gone"));
  }
  DiskRecordFields unused;
  DiskRecordFields* const parsed = fields != nullptr ? fields : &unused;
  status = parts_->payload.Get(RecordKey(place), [&](absl::string_view value) -> absl::Status {
    const absl::StatusOr<absl::string_view> bytes = ParseRecord(value, place, key, parsed);
    if (!bytes.ok()) return bytes.status();
    if (bytes->size() != payload.size()) {
      return absl::DataLossError(
          absl::StrCat(bytes->size(), " bytes of payload, not ", payload.size()));
    }
    if (!bytes->empty()) std::memcpy(payload.data(), bytes->data(), bytes->size());
    return absl::OkStatus();
  });
  NoteRead(parts_.get(), status);
  if (status.ok()) parts_->read_bytes.fetch_add(payload.size(), std::memory_order_relaxed);
  return At(place, status);
}

absl::Status RocksDbDiskTier::DropFile(uint64_t file) {
  absl::Status status =
      SmallWrite([this, file]() -> absl::Status { return parts_->payload.Drop(file); });
  if (!status.ok()) return status;
  parts_->health.NoteRoom();
  // Not needed any more; what stays is forgotten at the next start.
  parts_->ledger.ForgetDeadOf(file).IgnoreError();
  return absl::OkStatus();
}

absl::Status RocksDbDiskTier::Recover(const std::function<bool(RecoveredFile)>& visit) {
  for (FileTable::File file = parts_->files.NextFound(0); file.file != 0;
       file = parts_->files.NextFound(file.file)) {
    absl::Status status = parts_->health.AdmitRead();
    if (!status.ok()) return status;
    RecoveredFile recovered;
    recovered.file = file.file;
    recovered.bytes = file.bytes;
    status = RecoverFile(file.file, &recovered);
    if (status.ok()) {
      if (!visit(std::move(recovered))) return status;
      continue;
    }
    parts_->health.NoteRead(status);
    if (!absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
    if (!parts_->files.Contains(file.file)) continue;  // Dropped meanwhile.
    parts_->damaged_files.fetch_add(1, std::memory_order_relaxed);
    if (status = DropFile(file.file); !status.ok()) return status;
  }
  return parts_->health.AdmitRead();
}

absl::Status RocksDbDiskTier::RecoverFile(uint64_t file, RecoveredFile* recovered) {
  uint32_t records = 0;
  absl::Status status =
      parts_->payload.Get(FooterKey(file), [&](absl::string_view value) -> absl::Status {
        const absl::StatusOr<uint32_t> count = ParseDirectoryFooter(value, file);
        if (count.ok()) records = *count;
        return count.status();
      });
  while (status.ok() && recovered->entries.size() < records) {
    const auto done = static_cast<uint32_t>(recovered->entries.size());
    const uint32_t chunk = std::min(records - done, kEntriesPerChunk);
    status = parts_->payload.Get(ChunkKey({file, done + chunk - 1}), [&](absl::string_view value) {
      return ParseDirectoryChunk(value, recovered);
    });
    if (status.ok() && recovered->entries.size() != done + chunk) {
      status = absl::DataLossError("the directory is not as long as it should be");
    }
  }
  if (!status.ok()) return status;
  const absl::StatusOr<std::vector<uint32_t>> dead = parts_->ledger.DeadOf(file);
  if (!dead.ok()) return dead.status();
  for (uint32_t slot : *dead) {
    if (slot == kFooterSlot) return absl::DataLossError("the file was never finished");
    if (slot < records) recovered->entries[slot].dead = true;
  }
  return absl::OkStatus();
}

absl::StatusOr<DiskTier::Ledger> RocksDbDiskTier::ReadLedger() {
  if (absl::Status status = parts_->health.AdmitRead(); !status.ok()) return status;
  absl::StatusOr<Ledger> ledger = parts_->ledger.Read();
  parts_->health.NoteRead(ledger.status());
  return ledger;
}

absl::Status RocksDbDiskTier::PutNamespace(const KnownNamespace& known) {
  return SmallWrite([&]() -> absl::Status { return parts_->ledger.PutNamespace(known); });
}

absl::Status RocksDbDiskTier::PutFence(const Fence& fence) {
  return SmallWrite([&]() -> absl::Status { return parts_->ledger.PutFence(fence); });
}

absl::Status RocksDbDiskTier::PruneFences(uint64_t below, size_t fences_max) {
  return SmallWrite(
      [&]() -> absl::Status { return parts_->ledger.PruneFences(below, fences_max); });
}

absl::Status RocksDbDiskTier::MarkDead(absl::Span<const DiskPlace> places) {
  return SmallWrite([&]() -> absl::Status { return parts_->ledger.MarkDead(places); });
}

absl::Status RocksDbDiskTier::SmallWrite(absl::FunctionRef<absl::Status()> write) {
  absl::Status status = parts_->health.AdmitRead();
  if (!status.ok()) return status;
  status = parts_->directory->CheckHeld();
  if (status.ok()) status = WithBallast(parts_.get(), write);
  NoteWrite(parts_.get(), status);
  return status;
}

DiskTier::Stats RocksDbDiskTier::GetStats() const {
  Stats stats;
  stats.health = parts_->health.health();
  stats.reason = parts_->health.reason();
  stats.bytes_used = parts_->files.bytes_used();
  stats.bytes_max = parts_->files.bytes_max();
  stats.files = parts_->files.files();
  stats.written_bytes = parts_->written_bytes.load(std::memory_order_relaxed);
  stats.read_bytes = parts_->read_bytes.load(std::memory_order_relaxed);
  stats.read_errors = parts_->read_errors.load(std::memory_order_relaxed);
  stats.write_errors = parts_->write_errors.load(std::memory_order_relaxed);
  stats.damaged_records = parts_->damaged_records.load(std::memory_order_relaxed);
  stats.damaged_files =
      parts_->damaged_files.load(std::memory_order_relaxed) + parts_->payload.damaged_files();
  return stats;
}

absl::Status RocksDbDiskTier::Probe() {
  if (probing_.exchange(true)) return absl::UnavailableError("it is being probed already");
  absl::Status status = Load();
  if (status.ok()) status = ProbeDisk();
  if (status.ok()) {
    parts_->health.Readmit();
  } else {
    NoteWrite(parts_.get(), status);
  }
  probing_.store(false);
  return status;
}

absl::Status RocksDbDiskTier::ProbeDisk() {
  // A full tier needs room within its cap too.
  if (absl::Status status = ReserveRoom(parts_.get(), parts_->files.charge_min()); !status.ok()) {
    return status;
  }
  parts_->files.Release(parts_->files.charge_min());
  if (absl::Status staging = parts_->directory->MakeStaging(); !staging.ok()) return staging;
  const std::string path = parts_->directory->staging() + "/probe";
  const std::string written(kProbeBytes, 'p');
  std::string read;
  rocksdb::Status status =
      rocksdb::WriteStringToFile(env_.get(), written, path, /*should_sync=*/true);
  if (status.ok()) status = rocksdb::ReadFileToString(env_.get(), path, &read);
  env_->DeleteFile(path).PermitUncheckedError();
  if (!status.ok()) return FromRocksDb(status, path);
  if (read != written) return absl::UnavailableError("the disk does not give back what it took");
  if (absl::Status ballast = parts_->ballast.Fill(); !ballast.ok()) return ballast;
  return parts_->ledger.Probe();
}

}  // namespace cairn::node
