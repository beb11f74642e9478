// MemoryStorage: a DecisionStorage of strings, which is full when a test says so. Fake.
#pragma once

#include <string>
#include <vector>

#include "router/decisions/decision_storage.h"

namespace cairn::router {

// Outlives the storage, which the recorder owns. By one thread at a time.
struct MemoryDisk {
  // Oldest first; the last is the one that is written. A real storage keeps two.
  std::vector<std::string> files;
  size_t bytes_left = SIZE_MAX;

  // Of the two files that a disk would have.
  size_t BytesKept() const {
    size_t bytes = files.empty() ? 0 : files.back().size();
    if (files.size() > 1) bytes += files[files.size() - 2].size();
    return bytes;
  }
};

class MemoryStorage final : public DecisionStorage {
 public:
  explicit MemoryStorage(MemoryDisk* disk) : disk_(disk) {}

  absl::Status Begin() override {
    if (disk_->bytes_left == 0) return absl::ResourceExhaustedError("disk full");
    disk_->files.emplace_back();
    return absl::OkStatus();
  }
  absl::Status Append(absl::string_view bytes) override {
    const absl::string_view fits = bytes.substr(0, disk_->bytes_left);
    disk_->files.back().append(fits.data(), fits.size());
    disk_->bytes_left -= fits.size();
    if (fits.size() < bytes.size()) return absl::ResourceExhaustedError("disk full");
    return absl::OkStatus();
  }

 private:
  MemoryDisk* const disk_;
};

}  // namespace cairn::router
