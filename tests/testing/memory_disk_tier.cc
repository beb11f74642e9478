#include "tests/testing/memory_disk_tier.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/fence_pruning.h"
#include "common/base/check.h"

namespace cairn::testing {

using node::DiskPlace;
using node::DiskRecord;
using node::DiskRecordFields;
using node::DiskScope;

namespace {

template <typename T>
std::vector<T> ToVector(absl::Span<const T> span) {
  return std::vector<T>(span.begin(), span.end());
}

uint64_t RecordBytes(const DiskRecord& record) {
  return MemoryDiskTier::kRecordBytesBeside + record.payload.size() + record.extra.size() +
         record.tokens.size() * sizeof(uint32_t) + record.digests.size() * sizeof(uint64_t);
}

absl::Status Killed() {
  return absl::UnavailableError("the process that built this file was killed");
}

}  // namespace

class MemoryDiskTier::Builder final : public node::DiskFileBuilder {
 public:
  Builder(MemoryDiskTier* tier, uint64_t file, uint64_t life) : tier_(tier), file_(file) {
    stored_.life = life;
  }
  ~Builder() override {
    if (!finished_) tier_->Release(stored_.life, stored_.bytes);
  }

  uint64_t file() const override { return file_; }

  absl::StatusOr<DiskPlace> Add(const DiskRecord& record) override {
    CAIRN_CHECK(!finished_ && record.scope != nullptr);
    CAIRN_CHECK(record.block.payload_bytes == record.payload.size());
    absl::Status status = tier_->Enter(DiskCall::kAdd);
    if (status.ok()) status = tier_->Reserve(stored_.life, RecordBytes(record));
    tier_->NoteWrite(stored_.life, status);
    if (!status.ok()) return status;
    DiskRecordFields fields{.block = record.block,
                            .scope = *record.scope,
                            .writer = record.writer,
                            .written_unix_ms = record.written_unix_ms,
                            .tokens = ToVector(record.tokens),
                            .extra = ToVector(record.extra),
                            .digests = ToVector(record.digests)};
    stored_.records.push_back({std::move(fields), ToVector(record.payload)});
    stored_.bytes += RecordBytes(record);
    return DiskPlace{file_, static_cast<uint32_t>(stored_.records.size() - 1)};
  }

  uint64_t bytes() const override { return stored_.bytes; }

  absl::Status Finish() override {
    CAIRN_CHECK(!finished_);
    const uint64_t life = stored_.life;
    absl::Status status = tier_->Enter(DiskCall::kFinish);
    finished_ = true;
    if (status.ok()) {
      status = tier_->Keep(file_, std::move(stored_));
    } else {
      tier_->Release(life, stored_.bytes);
    }
    tier_->NoteWrite(life, status);
    return status;
  }

 private:
  MemoryDiskTier* const tier_;
  const uint64_t file_;
  StoredFile stored_;
  bool finished_ = false;
};

MemoryDiskTier::MemoryDiskTier(uint64_t bytes_max) { stats_.bytes_max = bytes_max; }
MemoryDiskTier::~MemoryDiskTier() = default;

absl::StatusOr<std::unique_ptr<node::DiskFileBuilder>> MemoryDiskTier::StartFile() {
  absl::Status status = health_.AdmitWrite();
  if (!status.ok()) return status;
  const uint64_t life = this->life();
  status = Enter(DiskCall::kStartFile);
  NoteWrite(life, status);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  return std::make_unique<Builder>(this, next_file_++, life);
}

absl::Status MemoryDiskTier::Read(DiskPlace place, const BlockKey& key, absl::Span<uint8_t> payload,
                                  DiskRecordFields* fields) {
  absl::Status status = health_.AdmitRead();
  if (!status.ok()) return status;
  status = Enter(DiskCall::kRead);
  if (status.ok()) status = ReadStored(place, key, payload, fields);
  health_.NoteRead(status);
  absl::MutexLock lock(&mutex_);
  stats_.read_bytes += status.ok() ? payload.size() : 0;
  stats_.read_errors += absl::IsUnavailable(status) ? 1 : 0;
  stats_.damaged_records += absl::IsDataLoss(status) ? 1 : 0;
  return status;
}

absl::Status MemoryDiskTier::ReadStored(DiskPlace place, const BlockKey& key,
                                        absl::Span<uint8_t> payload, DiskRecordFields* fields) {
  absl::MutexLock lock(&mutex_);
  const std::string where = absl::StrCat("record ", place.slot, " of file ", place.file);
  const auto file = files_.find(place.file);
  if (file == files_.end()) return absl::NotFoundError(absl::StrCat(where, ": the file is gone"));
  if (place.slot >= file->second.records.size()) {
    return absl::DataLossError(absl::StrCat(where, ": the file has no such record"));
  }
  const StoredRecord& record = file->second.records[place.slot];
  if (file->second.damaged || record.damaged || record.fields.block.key != key ||
      record.payload.size() != payload.size()) {
    return absl::DataLossError(absl::StrCat(where, ": not what was asked for"));
  }
  std::copy(record.payload.begin(), record.payload.end(), payload.begin());
  if (fields != nullptr) *fields = record.fields;
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::DropFile(uint64_t file) {
  absl::Status status = EnterSmallWrite(DiskCall::kDropFile);
  if (!status.ok()) return status;
  {
    absl::MutexLock lock(&mutex_);
    Erase(file);
  }
  health_.NoteRoom();
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::Recover(const std::function<bool(RecoveredFile)>& visit) {
  absl::Status status = health_.AdmitRead();
  if (!status.ok()) return status;
  status = Enter(DiskCall::kRecover);
  health_.NoteRead(status);
  if (!status.ok()) return status;
  for (uint64_t file : files()) {
    std::optional<RecoveredFile> recovered = Recovered(file);
    if (recovered.has_value() && !visit(*std::move(recovered))) break;
  }
  return absl::OkStatus();
}

std::optional<node::DiskTier::RecoveredFile> MemoryDiskTier::Recovered(uint64_t file) {
  absl::MutexLock lock(&mutex_);
  const auto it = files_.find(file);
  if (it == files_.end() || it->second.life == life_) return std::nullopt;
  if (it->second.damaged) {
    ++stats_.damaged_files;
    Erase(file);
    return std::nullopt;
  }
  RecoveredFile recovered;
  recovered.file = file;
  recovered.bytes = it->second.bytes;
  for (const StoredRecord& record : it->second.records) {
    const DiskScope& scope = record.fields.scope;
    auto known = std::find(recovered.scopes.begin(), recovered.scopes.end(), scope);
    const auto index = static_cast<uint32_t>(known - recovered.scopes.begin());
    if (known == recovered.scopes.end()) recovered.scopes.push_back(scope);
    const auto slot = static_cast<uint32_t>(recovered.entries.size());
    recovered.entries.push_back({index, record.fields.block, dead_.count({file, slot}) > 0});
  }
  return recovered;
}

absl::StatusOr<node::DiskTier::Ledger> MemoryDiskTier::ReadLedger() {
  absl::Status status = health_.AdmitRead();
  if (!status.ok()) return status;
  status = Enter(DiskCall::kReadLedger);
  health_.NoteRead(status);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  Ledger ledger;
  for (const auto& [labels, known] : namespaces_) ledger.namespaces.push_back(known);
  for (const auto& [id, fence] : fences_) ledger.fences.push_back(fence);
  ledger.dead_up_to = dead_up_to_;
  return ledger;
}

absl::Status MemoryDiskTier::PutNamespace(const KnownNamespace& known) {
  absl::Status status = EnterSmallWrite(DiskCall::kPutNamespace);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  namespaces_[{known.tenant, known.name}] = known;
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::PutFence(const Fence& fence) {
  absl::Status status = EnterSmallWrite(DiskCall::kPutFence);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto [it, is_new] =
      fences_.try_emplace({fence.fingerprint, fence.tenant, fence.scope_digest}, fence);
  it->second.sequence = std::max(it->second.sequence, fence.sequence);
  it->second.epoch = std::max(it->second.epoch, fence.epoch);
  if (!fence.tenant.empty()) return absl::OkStatus();
  for (auto known = namespaces_.begin(); known != namespaces_.end();) {
    const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(known->second.fields);
    const bool retired = fingerprint.ok() && *fingerprint == fence.fingerprint;
    known = retired ? namespaces_.erase(known) : std::next(known);
  }
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::PruneFences(uint64_t below, size_t fences_max) {
  absl::Status status = EnterSmallWrite(DiskCall::kPruneFences);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  std::vector<Fence> fences;
  for (const auto& [id, fence] : fences_) fences.push_back(fence);
  const auto pruning = node::FencePruning::Of(std::move(fences), below, fences_max);
  for (const Fence& f : pruning.forgotten) fences_.erase({f.fingerprint, f.tenant, f.scope_digest});
  dead_up_to_ = std::max(dead_up_to_, pruning.dead_up_to);
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::MarkDead(absl::Span<const DiskPlace> places) {
  absl::Status status = EnterSmallWrite(DiskCall::kMarkDead);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  for (const DiskPlace& place : places) dead_.insert({place.file, place.slot});
  return absl::OkStatus();
}

node::DiskTier::Stats MemoryDiskTier::GetStats() const {
  absl::MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.health = health_.health();
  stats.reason = health_.reason();
  stats.bytes_used += reserved_bytes_;
  stats.files = files_.size();
  return stats;
}

absl::Status MemoryDiskTier::Probe() {
  absl::Status status = Enter(DiskCall::kProbe);
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    status = CheckRoom(1);
  }
  if (status.ok()) health_.Readmit();
  return status;
}

// --- The script ---

void MemoryDiskTier::Fail(DiskCall call, absl::Status status, int times) {
  CAIRN_CHECK(!status.ok());
  absl::MutexLock lock(&mutex_);
  script_[static_cast<size_t>(call)] = {std::move(status), times};
}

void MemoryDiskTier::Heal() {
  absl::MutexLock lock(&mutex_);
  script_ = {};
}

void MemoryDiskTier::SetHook(std::function<void(DiskCall)> hook) {
  absl::MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

void MemoryDiskTier::Damage(DiskPlace place) {
  absl::MutexLock lock(&mutex_);
  files_.at(place.file).records.at(place.slot).damaged = true;
}

void MemoryDiskTier::DamageFile(uint64_t file) {
  absl::MutexLock lock(&mutex_);
  files_.at(file).damaged = true;
}

void MemoryDiskTier::LoseFile(uint64_t file) {
  absl::MutexLock lock(&mutex_);
  Erase(file);
}

void MemoryDiskTier::SetBytesMax(uint64_t bytes_max) {
  absl::MutexLock lock(&mutex_);
  stats_.bytes_max = bytes_max;
}

void MemoryDiskTier::Kill() {
  health_.Readmit();
  absl::MutexLock lock(&mutex_);
  ++life_;
  reserved_bytes_ = 0;
  calls_ = {};
  const uint64_t bytes_max = stats_.bytes_max, bytes_used = stats_.bytes_used;
  stats_ = {};
  stats_.bytes_max = bytes_max;
  stats_.bytes_used = bytes_used;
}

uint64_t MemoryDiskTier::calls(DiskCall call) const {
  absl::MutexLock lock(&mutex_);
  return calls_[static_cast<size_t>(call)];
}

std::vector<uint64_t> MemoryDiskTier::files() const {
  absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> files;
  for (const auto& [file, stored] : files_) files.push_back(file);
  return files;
}

absl::Status MemoryDiskTier::Enter(DiskCall call) {
  std::function<void(DiskCall)> hook;
  {
    absl::MutexLock lock(&mutex_);
    ++calls_[static_cast<size_t>(call)];
    hook = hook_;
  }
  if (hook) hook(call);
  absl::MutexLock lock(&mutex_);
  Script& script = script_[static_cast<size_t>(call)];
  if (script.times == 0) return absl::OkStatus();
  if (script.times > 0) --script.times;
  return script.status;
}

absl::Status MemoryDiskTier::EnterSmallWrite(DiskCall call) {
  absl::Status status = health_.AdmitRead();
  if (!status.ok()) return status;
  const uint64_t life = this->life();
  status = Enter(call);
  NoteWrite(life, status);
  return status;
}

uint64_t MemoryDiskTier::life() const {
  absl::MutexLock lock(&mutex_);
  return life_;
}

// What a dead process meets is nothing to the one after it.
void MemoryDiskTier::NoteWrite(uint64_t life, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (life != life_) return;
  stats_.write_errors += absl::IsUnavailable(status) ? 1 : 0;
  health_.NoteWrite(status);
}

absl::Status MemoryDiskTier::Reserve(uint64_t life, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (life != life_) return Killed();
  const absl::Status status = CheckRoom(bytes);
  if (status.ok()) reserved_bytes_ += bytes;
  return status;
}

void MemoryDiskTier::Release(uint64_t life, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(life != life_ || reserved_bytes_ >= bytes);
  if (life == life_) reserved_bytes_ -= bytes;
}

absl::Status MemoryDiskTier::Keep(uint64_t file, StoredFile stored) {
  absl::MutexLock lock(&mutex_);
  if (stored.life != life_) return Killed();
  CAIRN_CHECK(reserved_bytes_ >= stored.bytes);
  reserved_bytes_ -= stored.bytes;
  stats_.bytes_used += stored.bytes;
  stats_.written_bytes += stored.bytes;
  files_.emplace(file, std::move(stored));
  return absl::OkStatus();
}

absl::Status MemoryDiskTier::CheckRoom(uint64_t bytes) const {
  const uint64_t used = stats_.bytes_used + reserved_bytes_;
  if (used <= stats_.bytes_max && bytes <= stats_.bytes_max - used) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("no room for ", bytes, " bytes: ", used, " are used of ", stats_.bytes_max));
}

void MemoryDiskTier::Erase(uint64_t file) {
  dead_.erase(dead_.lower_bound({file, 0}), dead_.lower_bound({file + 1, 0}));
  const auto it = files_.find(file);
  if (it == files_.end()) return;
  stats_.bytes_used -= it->second.bytes;
  files_.erase(it);
}

}  // namespace cairn::testing
