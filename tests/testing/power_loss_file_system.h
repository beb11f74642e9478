// PowerLossFileSystem: RocksDB's view of a disk that loses its power (a faulty wrapper).
//
// Passes everything on to the real file system, and remembers what would not outlive a loss of
// power: bytes of files after their last sync, and names (made, linked, renamed or deleted) since
// their folder was synced. After CutAfter's count of changes all writes, syncs and names fail, as
// they do for a process whose disk is gone. Lose then makes the real folder what a start finds:
// of names, some first part of the unsynced changes, in their order, as journals keep them; of
// files, any length from the last synced one on, or zeros from there.
//
// Sees only what RocksDB does through it: names that others change beside it count as durable. So
// do files that were there before it. Thread-safe; the files it handed out must not outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rocksdb/file_system.h"

namespace cairn::testing {

class PowerLossFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  // A number below `bound`, which is above 0.
  using Choose = std::function<uint64_t(uint64_t bound)>;

  // What is deleted is kept in `attic`, on the same volume, until it is gone for good.
  PowerLossFileSystem(std::shared_ptr<rocksdb::FileSystem> target, std::string attic);
  ~PowerLossFileSystem() override;

  const char* Name() const override { return "PowerLossFileSystem"; }

  // --- The script ---
  // The power goes at the `changes`-th change from now on, which does not happen any more.
  void CutAfter(uint64_t changes);
  bool is_off() const;
  // Once nothing uses the folder: loses what is not durable, and the power is back. Returns how
  // many names and files were changed by it.
  uint64_t Lose(const Choose& choose);

  // --- What wrapped files call ---
  // Of one file, by whatever names.
  struct File {
    uint64_t synced_bytes = 0;
  };
  rocksdb::IOStatus BeforeChange();
  void Synced(File* file, uint64_t bytes);
  void FolderSynced(const std::string& folder);

  // --- FileSystem ---
  using Options = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    Debug* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       Debug* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
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
  // Of the name `path`, in its folder.
  struct Change {
    std::string path;
    std::string from;   // Where it was before; empty unless renamed.
    bool made = false;  // The name holds another file than before.
    std::string kept;   // In the attic: what the name held before; empty when nothing.
    std::shared_ptr<File> kept_file;
  };

  std::shared_ptr<File> FileAt(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts what the name holds now into the attic.
  void Keep(const std::string& path, Change* change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Undo(const Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string attic_;
  mutable absl::Mutex mutex_;
  bool off_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t changes_left_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  uint64_t kept_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Change> changes_ ABSL_GUARDED_BY(mutex_);  // Not durable yet, in their order.
  std::map<std::string, std::shared_ptr<File>> files_ ABSL_GUARDED_BY(mutex_);  // By path.
};

}  // namespace cairn::testing
