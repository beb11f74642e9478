#include "cache_node/store/disk_files.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {

DiskFileIndex DiskFiles::Add(uint64_t number, uint64_t bytes) {
  CAIRN_CHECK(number != 0);
  DiskFileIndex file = 0;
  if (free_.empty()) {
    file = static_cast<DiskFileIndex>(files_.size());
    files_.emplace_back();
  } else {
    file = free_.back();
    free_.pop_back();
  }
  files_[file] = DiskFile{};
  files_[file].number = number;
  files_[file].bytes = bytes;
  bytes_ += bytes;
  CAIRN_CHECK(by_number_.emplace(number, file).second);
  return file;
}

void DiskFiles::Erase(DiskFileIndex index) {
  DiskFile& file = files_[index];
  CAIRN_CHECK(file.number != 0 && file.live == 0 && file.used == 0 && file.payload_bytes == 0);
  CAIRN_CHECK(by_number_.erase(file.number) == 1);
  bytes_ -= file.bytes;
  slots_ -= file.slots.size();
  file = DiskFile{};
  free_.push_back(index);
}

std::optional<DiskFileIndex> DiskFiles::Find(uint64_t number) const {
  auto it = by_number_.find(number);
  if (it == by_number_.end()) return std::nullopt;
  return it->second;
}

const DiskFile& DiskFiles::At(DiskFileIndex file) const {
  CAIRN_CHECK(file < files_.size() && files_[file].number != 0);
  return files_[file];
}

void DiskFiles::Put(DiskFileIndex index, uint32_t slot, DiskHandle handle, uint64_t payload_bytes) {
  DiskFile& file = files_[index];
  CAIRN_CHECK(file.number != 0 && handle != 0);
  if (file.slots.size() <= slot) {
    slots_ += slot + 1 - file.slots.size();
    file.slots.resize(slot + 1, 0);
  }
  CAIRN_CHECK(file.slots[slot] == 0);
  file.slots[slot] = handle;
  ++file.live;
  file.payload_bytes += payload_bytes;
  payload_bytes_ += payload_bytes;
}

void DiskFiles::Take(DiskFileIndex index, uint32_t slot, uint64_t payload_bytes, bool used) {
  DiskFile& file = files_[index];
  CAIRN_CHECK(slot < file.slots.size() && file.slots[slot] != 0 && file.live > 0);
  file.slots[slot] = 0;
  --file.live;
  if (used) {
    CAIRN_CHECK(file.used > 0);
    --file.used;
  }
  CAIRN_CHECK(file.payload_bytes >= payload_bytes);
  file.payload_bytes -= payload_bytes;
  payload_bytes_ -= payload_bytes;
}

void DiskFiles::NoteSequence(DiskFileIndex file, uint64_t sequence) {
  files_[file].oldest_sequence = std::min(files_[file].oldest_sequence, sequence);
}

uint64_t DiskFiles::OldestSequence() const {
  uint64_t oldest = UINT64_MAX;
  for (const auto& [number, file] : by_number_) {
    oldest = std::min(oldest, files_[file].oldest_sequence);
  }
  return oldest;
}

std::optional<DiskFileIndex> DiskFiles::Oldest() const {
  std::optional<DiskFileIndex> best;
  size_t looked_at = 0;
  size_t compared = 0;
  for (const auto& [number, index] : by_number_) {
    const DiskFile& file = files_[index];
    if (file.busy) continue;
    if (file.live == 0) return index;
    if (++looked_at > kEmptyLookedAt) break;
    if (compared >= kSharesLookedAt) continue;
    ++compared;
    // file.used / file.live < best.used / best.live, in whole numbers.
    if (best.has_value() &&
        uint64_t{file.used} * files_[*best].live >= uint64_t{files_[*best].used} * file.live) {
      continue;
    }
    best = index;
  }
  return best;
}

}  // namespace cairn::node
