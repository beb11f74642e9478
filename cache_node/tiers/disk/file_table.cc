#include "cache_node/tiers/disk/file_table.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {

absl::Status FileTable::Reserve(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes_used_ > bytes_max_ || bytes > bytes_max_ - bytes_used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", bytes, " bytes: ", bytes_used_, " are used of ", bytes_max_));
  }
  bytes_used_ += bytes;
  return absl::OkStatus();
}

void FileTable::Release(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(bytes_used_ >= bytes);
  bytes_used_ -= bytes;
}

void FileTable::Add(File file, uint64_t reserved) {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(bytes_used_ >= reserved);
  bytes_used_ = bytes_used_ - reserved + Charge(file.bytes);
  const bool is_new = files_.emplace(file.file, Known{Charge(file.bytes), false}).second;
  CAIRN_CHECK(is_new);
}

std::vector<uint64_t> FileTable::SetFound(const std::vector<File>& found) {
  absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> unknown;
  std::set<uint64_t> there;
  for (const File& file : found) {
    there.insert(file.file);
    if (found_ && files_.count(file.file) == 0) unknown.push_back(file.file);
    if (found_ || !files_.emplace(file.file, Known{Charge(file.bytes), true}).second) continue;
    bytes_used_ += Charge(file.bytes);
  }
  for (auto it = files_.begin(); it != files_.end();) {
    if (there.count(it->first) > 0) {
      ++it;
      continue;
    }
    bytes_used_ -= it->second.bytes;
    it = files_.erase(it);
  }
  found_ = true;
  return unknown;
}

FileTable::File FileTable::NextFound(uint64_t after) const {
  absl::MutexLock lock(&mutex_);
  for (auto it = files_.upper_bound(after); it != files_.end(); ++it) {
    if (it->second.found) return {it->first, it->second.bytes};
  }
  return {};
}

bool FileTable::Contains(uint64_t file) const {
  absl::MutexLock lock(&mutex_);
  return files_.count(file) > 0;
}

void FileTable::Remove(uint64_t file) {
  absl::MutexLock lock(&mutex_);
  const auto it = files_.find(file);
  if (it == files_.end()) return;
  CAIRN_CHECK(bytes_used_ >= it->second.bytes);
  bytes_used_ -= it->second.bytes;
  files_.erase(it);
}

uint64_t FileTable::bytes_used() const {
  absl::MutexLock lock(&mutex_);
  return bytes_used_;
}

uint64_t FileTable::files() const {
  absl::MutexLock lock(&mutex_);
  return files_.size();
}

}  // namespace cairn::node
