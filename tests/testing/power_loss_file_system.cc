#include "tests/testing/power_loss_file_system.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;
using rocksdb::FSDirectory;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

std::string Normal(const std::string& path) {
  std::string text = fs::path(path).lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string FolderOf(const std::string& path) { return fs::path(path).parent_path().string(); }

class PowerLossWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  PowerLossWritableFile(PowerLossFileSystem* system,
                        std::shared_ptr<PowerLossFileSystem::File> file, uint64_t bytes_before,
                        std::unique_ptr<FSWritableFile> target)
      : FSWritableFileOwnerWrapper(std::move(target)),
        system_(system),
        file_(std::move(file)),
        bytes_before_(bytes_before) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return target()->PositionedAppend(data, offset, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return target()->Truncate(size, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return NoteSync(target()->Sync(options, debug), options, debug);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return NoteSync(target()->Fsync(options, debug), options, debug);
  }

 private:
  IOStatus NoteSync(IOStatus status, const IOOptions& options, IODebugContext* debug) {
    if (!status.ok()) return status;
    system_->Synced(file_.get(), bytes_before_ + target()->GetFileSize(options, debug));
    return status;
  }

  PowerLossFileSystem* const system_;
  const std::shared_ptr<PowerLossFileSystem::File> file_;
  const uint64_t bytes_before_;  // The target counts from where it was opened.
};

class PowerLossDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  PowerLossDirectory(PowerLossFileSystem* system, std::string path,
                     std::unique_ptr<FSDirectory> target)
      : FSDirectoryWrapper(std::move(target)), system_(system), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return NoteSync(FSDirectoryWrapper::Fsync(options, debug));
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& how) override {
    if (IOStatus status = system_->BeforeChange(); !status.ok()) return status;
    return NoteSync(FSDirectoryWrapper::FsyncWithDirOptions(options, debug, how));
  }

 private:
  IOStatus NoteSync(IOStatus status) {
    if (status.ok()) system_->FolderSynced(path_);
    return status;
  }

  PowerLossFileSystem* const system_;
  const std::string path_;
};

}  // namespace

PowerLossFileSystem::PowerLossFileSystem(std::shared_ptr<rocksdb::FileSystem> target,
                                         std::string attic)
    : FileSystemWrapper(std::move(target)), attic_(std::move(attic)) {
  fs::create_directories(attic_);
}

PowerLossFileSystem::~PowerLossFileSystem() {
  std::error_code ignored;
  fs::remove_all(attic_, ignored);
}

// --- The script ---

void PowerLossFileSystem::CutAfter(uint64_t changes) {
  CAIRN_CHECK(changes > 0);
  absl::MutexLock lock(&mutex_);
  changes_left_ = changes;
}

bool PowerLossFileSystem::is_off() const {
  absl::MutexLock lock(&mutex_);
  return off_;
}

uint64_t PowerLossFileSystem::Lose(const Choose& choose) {
  absl::MutexLock lock(&mutex_);
  uint64_t lost = 0;
  const uint64_t stays = choose(changes_.size() + 1);
  for (; changes_.size() > stays; changes_.pop_back(), ++lost) Undo(changes_.back());
  std::set<const File*> seen;
  for (const auto& [path, file] : files_) {
    std::error_code gone;
    const uint64_t bytes = fs::file_size(path, gone);
    if (gone || bytes <= file->synced_bytes || !seen.insert(file.get()).second) continue;
    const uint64_t kept = file->synced_bytes + choose(bytes - file->synced_bytes + 1);
    const bool zeros = choose(3) == 0;
    if (!zeros && kept == bytes) continue;
    fs::resize_file(path, zeros ? file->synced_bytes : kept);
    if (zeros) fs::resize_file(path, kept);
    ++lost;
  }
  changes_.clear();
  files_.clear();
  for (const auto& entry : fs::directory_iterator(attic_)) fs::remove(entry);
  changes_left_ = UINT64_MAX;
  off_ = false;
  return lost;
}

void PowerLossFileSystem::Undo(const Change& change) {
  std::error_code ignored;  // Others may have removed the name, or its folder.
  if (!change.from.empty()) {
    fs::rename(change.path, change.from, ignored);
    files_[change.from] = files_[change.path];
  } else if (change.made) {
    fs::remove(change.path, ignored);
  }
  files_.erase(change.path);
  if (change.kept.empty()) return;
  fs::rename(change.kept, change.path, ignored);
  files_[change.path] = change.kept_file;
}

// --- What wrapped files call ---

IOStatus PowerLossFileSystem::BeforeChange() {
  absl::MutexLock lock(&mutex_);
  if (!off_ && changes_left_ != UINT64_MAX && --changes_left_ == 0) off_ = true;
  return off_ ? IOStatus::IOError("the power is gone") : IOStatus::OK();
}

void PowerLossFileSystem::Synced(File* file, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  file->synced_bytes = bytes;
}

void PowerLossFileSystem::FolderSynced(const std::string& folder) {
  absl::MutexLock lock(&mutex_);
  const auto is_durable = [&folder](const Change& change) {
    return FolderOf(change.path) == folder;
  };
  for (const Change& change : changes_) {
    if (is_durable(change) && !change.kept.empty()) fs::remove(change.kept);
  }
  changes_.erase(std::remove_if(changes_.begin(), changes_.end(), is_durable), changes_.end());
}

std::shared_ptr<PowerLossFileSystem::File> PowerLossFileSystem::FileAt(const std::string& path) {
  std::shared_ptr<File>& file = files_[path];
  if (file == nullptr) {
    std::error_code gone;
    const uint64_t bytes = fs::file_size(path, gone);
    file = std::make_shared<File>(File{.synced_bytes = gone ? 0 : bytes});
  }
  return file;
}

void PowerLossFileSystem::Keep(const std::string& path, Change* change) {
  if (!fs::exists(path)) return;
  change->kept = absl::StrCat(attic_, "/", ++kept_count_);
  change->kept_file = FileAt(path);
  fs::create_hard_link(path, change->kept);
}

// --- FileSystem ---

IOStatus PowerLossFileSystem::NewWritableFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<FSWritableFile>* file, Debug* debug) {
  if (IOStatus status = BeforeChange(); !status.ok()) return status;
  const std::string name = Normal(path);
  absl::MutexLock lock(&mutex_);
  Change change{.path = name, .from = "", .made = true, .kept = "", .kept_file = nullptr};
  Keep(name, &change);
  // A new file under the name, so that what is kept stays as it is.
  std::error_code gone;
  fs::remove(name, gone);
  const IOStatus status = target()->NewWritableFile(path, options, file, debug);
  if (!status.ok()) return status;
  changes_.push_back(std::move(change));
  files_[name] = std::make_shared<File>();
  *file = std::make_unique<PowerLossWritableFile>(this, files_[name], /*bytes_before=*/0,
                                                  std::move(*file));
  return status;
}

IOStatus PowerLossFileSystem::ReopenWritableFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<FSWritableFile>* file,
                                                 Debug* debug) {
  std::error_code gone;
  const uint64_t bytes = fs::file_size(path, gone);
  if (gone) return NewWritableFile(path, options, file, debug);
  if (IOStatus status = BeforeChange(); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const IOStatus status = target()->ReopenWritableFile(path, options, file, debug);
  if (!status.ok()) return status;
  *file =
      std::make_unique<PowerLossWritableFile>(this, FileAt(Normal(path)), bytes, std::move(*file));
  return status;
}

// Not what the tier's options ask for.
IOStatus PowerLossFileSystem::ReuseWritableFile(const std::string& path, const std::string&,
                                                const rocksdb::FileOptions&,
                                                std::unique_ptr<FSWritableFile>*, Debug*) {
  return IOStatus::NotSupported("reusing files", path);
}

IOStatus PowerLossFileSystem::NewDirectory(const std::string& path, const Options& options,
                                           std::unique_ptr<FSDirectory>* directory, Debug* debug) {
  IOStatus status = target()->NewDirectory(path, options, directory, debug);
  if (status.ok()) {
    *directory = std::make_unique<PowerLossDirectory>(this, Normal(path), std::move(*directory));
  }
  return status;
}

IOStatus PowerLossFileSystem::DeleteFile(const std::string& path, const Options& options,
                                         Debug* debug) {
  if (IOStatus status = BeforeChange(); !status.ok()) return status;
  const std::string name = Normal(path);
  absl::MutexLock lock(&mutex_);
  Change change{.path = name, .from = "", .made = false, .kept = "", .kept_file = nullptr};
  Keep(name, &change);
  const IOStatus status = target()->DeleteFile(path, options, debug);
  if (!status.ok()) return status;
  changes_.push_back(std::move(change));
  files_.erase(name);
  return status;
}

IOStatus PowerLossFileSystem::RenameFile(const std::string& from, const std::string& to,
                                         const Options& options, Debug* debug) {
  if (IOStatus status = BeforeChange(); !status.ok()) return status;
  const std::string name = Normal(to), before = Normal(from);
  absl::MutexLock lock(&mutex_);
  Change change{.path = name, .from = before, .made = true, .kept = "", .kept_file = nullptr};
  Keep(name, &change);
  const std::shared_ptr<File> file = FileAt(before);
  const IOStatus status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  changes_.push_back(std::move(change));
  files_.erase(before);
  files_[name] = file;
  return status;
}

IOStatus PowerLossFileSystem::LinkFile(const std::string& from, const std::string& to,
                                       const Options& options, Debug* debug) {
  if (IOStatus status = BeforeChange(); !status.ok()) return status;
  const std::string name = Normal(to);
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<File> file = FileAt(Normal(from));
  const IOStatus status = target()->LinkFile(from, to, options, debug);
  if (!status.ok()) return status;
  changes_.push_back({.path = name, .from = "", .made = true, .kept = "", .kept_file = nullptr});
  files_[name] = file;
  return status;
}

}  // namespace cairn::testing
