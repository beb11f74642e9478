#include "tests/testing/fault_file_system.h"

#include <cstring>
#include <utility>

#include "absl/strings/match.h"

namespace cairn::testing {
namespace {

using rocksdb::FSDirectory;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSReadRequest;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class FaultSequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  FaultSequentialFile(FaultFileSystem* system, std::string path,
                      std::unique_ptr<FSSequentialFile> file)
      : FSSequentialFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    if (IOStatus status = system_->Before(DiskIo::kRead, path_, n); !status.ok()) return status;
    const IOStatus status = target()->Read(n, options, result, scratch, debug);
    if (!status.ok()) return status;
    system_->AfterRead(path_, offset_, result, scratch);
    offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;
    return target()->Skip(n);
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result,
                          char* scratch, IODebugContext* debug) override {
    if (IOStatus status = system_->Before(DiskIo::kRead, path_, n); !status.ok()) return status;
    const IOStatus status = target()->PositionedRead(offset, n, options, result, scratch, debug);
    if (status.ok()) system_->AfterRead(path_, offset, result, scratch);
    return status;
  }

 private:
  FaultFileSystem* const system_;
  const std::string path_;
  uint64_t offset_ = 0;
};

class FaultRandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultRandomAccessFile(FaultFileSystem* system, std::string path,
                        std::unique_ptr<FSRandomAccessFile> file)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) const override {
    if (IOStatus status = system_->Before(DiskIo::kRead, path_, n); !status.ok()) return status;
    const IOStatus status = target()->Read(offset, n, options, result, scratch, debug);
    if (status.ok()) system_->AfterRead(path_, offset, result, scratch);
    return status;
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    for (size_t i = 0; i < count; ++i) {
      FSReadRequest& one = requests[i];
      one.status = Read(one.offset, one.len, options, &one.result, one.scratch, debug);
    }
    return IOStatus::OK();
  }
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options,
                     std::function<void(const FSReadRequest&, void*)> done, void* argument,
                     void** handle, rocksdb::IOHandleDeleter* deleter,
                     IODebugContext* debug) override {
    // Read at once, here.
    return FSRandomAccessFile::ReadAsync(request, options, std::move(done), argument, handle,
                                         deleter, debug);
  }

 private:
  FaultFileSystem* const system_;
  const std::string path_;
};

class FaultWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultWritableFile(FaultFileSystem* system, std::string path, std::unique_ptr<FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), system_(system), path_(std::move(path)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = BeforeWrite(data); !status.ok()) return status;
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    if (IOStatus status = BeforeWrite(data); !status.ok()) return status;
    return target()->PositionedAppend(data, offset, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->Before(DiskIo::kSync, path_, 0); !status.ok()) return status;
    return target()->Sync(options, debug);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->Before(DiskIo::kSync, path_, 0); !status.ok()) return status;
    return target()->Fsync(options, debug);
  }

 private:
  IOStatus BeforeWrite(const Slice& data) {
    return system_->Before(DiskIo::kWrite, path_, data.size());
  }

  FaultFileSystem* const system_;
  const std::string path_;
};

class FaultDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultDirectory(FaultFileSystem* system, std::string path, std::unique_ptr<FSDirectory> directory)
      : FSDirectoryWrapper(std::move(directory)), system_(system), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    if (IOStatus status = system_->Before(DiskIo::kSync, path_, 0); !status.ok()) return status;
    return FSDirectoryWrapper::Fsync(options, debug);
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& how) override {
    if (IOStatus status = system_->Before(DiskIo::kSync, path_, 0); !status.ok()) return status;
    return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, how);
  }

 private:
  FaultFileSystem* const system_;
  const std::string path_;
};

}  // namespace

FaultFileSystem::FaultFileSystem(std::shared_ptr<rocksdb::FileSystem> target)
    : FileSystemWrapper(std::move(target)) {}

// --- The script ---

void FaultFileSystem::Fail(DiskIo io, absl::string_view part, IOStatus status, int times) {
  absl::MutexLock lock(&mutex_);
  rules_.push_back({io, std::string(part), std::move(status), times});
}

void FaultFileSystem::FailAll(absl::string_view part, IOStatus status) {
  for (DiskIo io : {DiskIo::kRead, DiskIo::kWrite, DiskIo::kSync, DiskIo::kName}) {
    Fail(io, part, status);
  }
}

void FaultFileSystem::FlipBit(absl::string_view part, uint64_t offset) {
  absl::MutexLock lock(&mutex_);
  flips_.push_back({std::string(part), offset});
}

void FaultFileSystem::SetHook(std::function<void(DiskIo, const std::string&)> hook) {
  absl::MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

void FaultFileSystem::Throttle(uint64_t bytes_per_second,
                               std::function<void(absl::Duration)> wait) {
  absl::MutexLock lock(&mutex_);
  bytes_per_second_ = bytes_per_second;
  wait_ = std::move(wait);
}

void FaultFileSystem::Heal() {
  absl::MutexLock lock(&mutex_);
  rules_.clear();
  flips_.clear();
  hook_ = nullptr;
  bytes_per_second_ = 0;
  wait_ = nullptr;
}

// --- What wrapped files call ---

IOStatus FaultFileSystem::Before(DiskIo io, const std::string& path, uint64_t bytes) {
  calls_.fetch_add(1);
  std::function<void(DiskIo, const std::string&)> hook;
  std::function<void(absl::Duration)> wait;
  absl::Duration takes;
  {
    absl::MutexLock lock(&mutex_);
    hook = hook_;
    if (bytes_per_second_ > 0) {
      wait = wait_;
      takes = absl::Seconds(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_));
    }
  }
  if (hook) hook(io, path);
  if (wait && takes > absl::ZeroDuration()) wait(takes);
  {
    absl::MutexLock lock(&mutex_);
    for (Rule& rule : rules_) {
      if (rule.io != io || rule.times == 0 || !absl::StrContains(path, rule.part)) continue;
      if (rule.times > 0) --rule.times;
      return rule.status;
    }
  }
  if (io == DiskIo::kWrite) bytes_written_.fetch_add(bytes);
  if (io == DiskIo::kRead) bytes_read_.fetch_add(bytes);
  return IOStatus::OK();
}

void FaultFileSystem::AfterRead(const std::string& path, uint64_t offset, Slice* result,
                                char* scratch) {
  absl::MutexLock lock(&mutex_);
  for (const Flip& flip : flips_) {
    if (!absl::StrContains(path, flip.part)) continue;
    if (flip.offset < offset || flip.offset - offset >= result->size()) continue;
    // A read may answer memory that is not its scratch.
    if (result->data() != scratch) std::memcpy(scratch, result->data(), result->size());
    scratch[flip.offset - offset] ^= 1;
    *result = Slice(scratch, result->size());
  }
}

// --- FileSystem ---

IOStatus FaultFileSystem::NewSequentialFile(const std::string& path,
                                            const rocksdb::FileOptions& options,
                                            std::unique_ptr<FSSequentialFile>* file, Debug* debug) {
  if (IOStatus status = Before(DiskIo::kRead, path, 0); !status.ok()) return status;
  IOStatus status = target()->NewSequentialFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<FaultSequentialFile>(this, path, std::move(*file));
  return status;
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<FSRandomAccessFile>* file,
                                              Debug* debug) {
  if (IOStatus status = Before(DiskIo::kRead, path, 0); !status.ok()) return status;
  IOStatus status = target()->NewRandomAccessFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<FaultRandomAccessFile>(this, path, std::move(*file));
  return status;
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<FSWritableFile>* file, Debug* debug) {
  if (IOStatus status = Before(DiskIo::kWrite, path, 0); !status.ok()) return status;
  IOStatus status = target()->NewWritableFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<FaultWritableFile>(this, path, std::move(*file));
  return status;
}

IOStatus FaultFileSystem::ReopenWritableFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<FSWritableFile>* file, Debug* debug) {
  if (IOStatus status = Before(DiskIo::kWrite, path, 0); !status.ok()) return status;
  IOStatus status = target()->ReopenWritableFile(path, options, file, debug);
  if (status.ok()) *file = std::make_unique<FaultWritableFile>(this, path, std::move(*file));
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const Options& options,
                                       std::unique_ptr<FSDirectory>* directory, Debug* debug) {
  IOStatus status = target()->NewDirectory(path, options, directory, debug);
  if (status.ok()) {
    *directory = std::make_unique<FaultDirectory>(this, path, std::move(*directory));
  }
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const Options& options,
                                     Debug* debug) {
  if (IOStatus status = Before(DiskIo::kName, path, 0); !status.ok()) return status;
  return target()->DeleteFile(path, options, debug);
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                     const Options& options, Debug* debug) {
  if (IOStatus status = Before(DiskIo::kName, to, 0); !status.ok()) return status;
  return target()->RenameFile(from, to, options, debug);
}

IOStatus FaultFileSystem::LinkFile(const std::string& from, const std::string& to,
                                   const Options& options, Debug* debug) {
  if (IOStatus status = Before(DiskIo::kName, to, 0); !status.ok()) return status;
  return target()->LinkFile(from, to, options, debug);
}

}  // namespace cairn::testing
