// FaultFileSystem: RocksDB's view of the disk (a faulty wrapper), which fails by script.
//
// Passes everything on to the real file system and counts it. Rules say which calls on which paths
// fail, with what, and how often; a flipped bit shows in reads only; a hook sees every read and
// write before it happens, and may wait; a rate makes each take its time, which `wait` spends, so
// that a test can spend it on a fake clock. What was deleted or cut short on the real disk is not
// its business: a test does that itself.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rocksdb/file_system.h"

namespace cairn::testing {

enum class DiskIo : uint8_t {
  kRead,   // Of bytes, also opening a file to read it.
  kWrite,  // Of bytes, also making a file.
  kSync,   // Of a file or folder.
  kName,   // Renaming, linking and deleting.
};

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  static constexpr int kUntilHealed = -1;

  explicit FaultFileSystem(std::shared_ptr<rocksdb::FileSystem> target);

  const char* Name() const override { return "FaultFileSystem"; }

  // --- The script ---
  // The next `times` calls of this kind on paths that contain `part` answer `status` and do
  // nothing.
  void Fail(DiskIo io, absl::string_view part, rocksdb::IOStatus status, int times = kUntilHealed);
  // The same for all kinds.
  void FailAll(absl::string_view part, rocksdb::IOStatus status);
  // Reads that cover `offset` of a file whose path contains `part` see one bit of it changed.
  void FlipBit(absl::string_view part, uint64_t offset);
  void SetHook(std::function<void(DiskIo, const std::string& path)> hook);
  // Each read and write takes bytes / rate, spent by `wait` on its thread. 0: no time.
  void Throttle(uint64_t bytes_per_second, std::function<void(absl::Duration)> wait);
  // No rule, bit, hook or rate any more.
  void Heal();

  uint64_t bytes_written() const { return bytes_written_.load(); }
  uint64_t bytes_read() const { return bytes_read_.load(); }
  uint64_t calls() const { return calls_.load(); }

  // --- What wrapped files call ---
  rocksdb::IOStatus Before(DiskIo io, const std::string& path, uint64_t bytes);
  void AfterRead(const std::string& path, uint64_t offset, rocksdb::Slice* result, char* scratch);

  // --- FileSystem ---
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      Debug* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        Debug* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       Debug* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const Options& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 Debug* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const Options& options,
                               Debug* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const Options& options, Debug* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to, const Options& options,
                             Debug* debug) override;

 private:
  struct Rule {
    DiskIo io;
    std::string part;
    rocksdb::IOStatus status;
    int times;
  };
  struct Flip {
    std::string part;
    uint64_t offset;
  };

  mutable absl::Mutex mutex_;
  std::vector<Rule> rules_ ABSL_GUARDED_BY(mutex_);
  std::vector<Flip> flips_ ABSL_GUARDED_BY(mutex_);
  std::function<void(DiskIo, const std::string&)> hook_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_per_second_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void(absl::Duration)> wait_ ABSL_GUARDED_BY(mutex_);

  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> calls_{0};
};

}  // namespace cairn::testing
