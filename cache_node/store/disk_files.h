// DiskFiles: the files of the disk tier as the store knows them, oldest first, and which blocks lie
// in each.
//
// Part of the DiskIndex, which keeps the lists. Not thread-safe: under the store's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"

namespace cairn::node {

// A block on disk as a number that is used again after it left; 0 is none.
using DiskHandle = uint32_t;
// A file by its position here, used again after it left.
using DiskFileIndex = uint32_t;

struct DiskFile {
  uint64_t number = 0;                    // 0: free.
  uint64_t bytes = 0;                     // On disk.
  uint64_t oldest_sequence = UINT64_MAX;  // Of all its records, dead ones too.
  std::vector<DiskHandle> slots;
  uint32_t live = 0;           // Slots that are not 0.
  uint32_t used = 0;           // Blocks of it that were used since they were written.
  uint64_t payload_bytes = 0;  // Of the live ones.
  bool busy = false;           // It is being filled, or about to leave.
};

class DiskFiles {
 public:
  static constexpr uint64_t kBytesPerFile = 192;
  // A list that grew keeps up to twice what it needs.
  static constexpr uint64_t kBytesPerSlot = 2 * sizeof(DiskHandle);

  // The number must not be there.
  DiskFileIndex Add(uint64_t number, uint64_t bytes);
  // It has no block left.
  void Erase(DiskFileIndex file);
  std::optional<DiskFileIndex> Find(uint64_t number) const;
  const DiskFile& At(DiskFileIndex file) const;

  void Put(DiskFileIndex file, uint32_t slot, DiskHandle handle, uint64_t payload_bytes);
  void Take(DiskFileIndex file, uint32_t slot, uint64_t payload_bytes, bool used);
  // A record of it has this sequence.
  void NoteSequence(DiskFileIndex file, uint64_t sequence);
  // Of all files.
  uint64_t OldestSequence() const;
  void CountUsed(DiskFileIndex file) { ++files_[file].used; }
  void MarkBusy(DiskFileIndex file, bool busy) { files_[file].busy = busy; }

  // Which should make room: one without blocks if there is such among the oldest, else of the
  // oldest few the one with the smallest share of used blocks, the older of equals. Nothing when
  // there is none that is not busy.
  std::optional<DiskFileIndex> Oldest() const;

  size_t size() const { return by_number_.size(); }
  uint64_t payload_bytes() const { return payload_bytes_; }
  uint64_t bytes() const { return bytes_; }  // On disk, of all.
  // What the lists take.
  uint64_t list_bytes() const { return size() * kBytesPerFile + slots_ * kBytesPerSlot; }
  const absl::btree_map<uint64_t, DiskFileIndex>& by_number() const { return by_number_; }

 private:
  // Looked at by Oldest.
  static constexpr size_t kEmptyLookedAt = 64;
  static constexpr size_t kSharesLookedAt = 8;

  std::vector<DiskFile> files_;
  std::vector<DiskFileIndex> free_;
  absl::btree_map<uint64_t, DiskFileIndex> by_number_;
  uint64_t payload_bytes_ = 0;
  uint64_t bytes_ = 0;
  uint64_t slots_ = 0;  // Of all lists.
};

}  // namespace cairn::node
