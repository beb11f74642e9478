// FileTable: which payload files there are, and the room that they take of the cap.
//
// A small file is charged as a share of the cap, so that the number of files is bounded too. Room
// is reserved before it is written: what is on disk never exceeds the cap. Thread-safe, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cairn::node {

class FileTable {
 public:
  static constexpr uint64_t kFilesMax = 8192;

  struct File {
    uint64_t file = 0;
    uint64_t bytes = 0;
  };

  explicit FileTable(uint64_t bytes_max)
      : bytes_max_(bytes_max), charge_min_(bytes_max / kFilesMax) {}

  uint64_t bytes_max() const { return bytes_max_; }
  // What a file takes at least.
  uint64_t charge_min() const { return charge_min_; }

  // RESOURCE_EXHAUSTED when there is not as much room.
  absl::Status Reserve(uint64_t bytes);
  void Release(uint64_t bytes);
  // `reserved` bytes of it become a file that is there.
  void Add(File file, uint64_t reserved);

  // Files that were found when the databases were opened; the first call only, later ones forget
  // what is not among them. Answers those that nobody knows, which are to be dropped.
  std::vector<uint64_t> SetFound(const std::vector<File>& found);
  // The least file found, above `after`, that is still there; 0 when there is none.
  File NextFound(uint64_t after) const;

  bool Contains(uint64_t file) const;
  void Remove(uint64_t file);

  uint64_t bytes_used() const;
  uint64_t files() const;

 private:
  struct Known {
    uint64_t bytes = 0;  // As charged.
    bool found = false;
  };

  uint64_t Charge(uint64_t bytes) const { return bytes > charge_min_ ? bytes : charge_min_; }

  const uint64_t bytes_max_;
  const uint64_t charge_min_;

  mutable absl::Mutex mutex_;
  std::map<uint64_t, Known> files_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_used_ ABSL_GUARDED_BY(mutex_) = 0;  // Reserved ones too.
  bool found_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace cairn::node
