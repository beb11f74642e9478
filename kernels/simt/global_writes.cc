#include "kernels/simt/global_writes.h"

#include <algorithm>
#include <utility>

namespace cairn::simt::emulated {
namespace {

constexpr uint32_t kLanes = 32;
constexpr size_t kTableStart = 1 << 12;

size_t HashOf(uint64_t address) { return (address * 0x9e3779b97f4a7c15u) >> 20; }

}  // namespace

void GlobalWrites::BeginLaunch() {
  ++launch_;
  used_ = 0;
  atomics_ = 0;
  split_.clear();
  releases_.clear();
  acquires_.clear();
  if (table_.empty()) table_.resize(kTableStart);
}

void GlobalWrites::BeginBlock(uint64_t block) {
  block_ = block;
  acquires_.clear();
}

const GlobalWrites::Chunk* GlobalWrites::Find(uint64_t address) const {
  const size_t mask = table_.size() - 1;
  for (size_t i = HashOf(address) & mask;; i = (i + 1) & mask) {
    const Chunk& chunk = table_[i];
    if (chunk.launch != launch_) return nullptr;
    if (chunk.address == address) return &chunk;
  }
}

GlobalWrites::Chunk* GlobalWrites::Make(uint64_t address) {
  if (used_ * 2 >= table_.size()) Grow();
  const size_t mask = table_.size() - 1;
  for (size_t i = HashOf(address) & mask;; i = (i + 1) & mask) {
    Chunk& chunk = table_[i];
    if (chunk.launch != launch_) {
      chunk = Chunk{};
      chunk.address = address;
      chunk.launch = launch_;
      ++used_;
      return &chunk;
    }
    if (chunk.address == address) return &chunk;
  }
}

void GlobalWrites::Grow() {
  std::vector<Chunk> old(table_.size() * 2);
  old.swap(table_);
  used_ = 0;
  for (const Chunk& chunk : old) {
    if (chunk.launch == launch_) *Make(chunk.address) = chunk;
  }
}

bool GlobalWrites::Covers(const Release& release, const Writer& writer) {
  const Writer& by = release.by;
  if (by.block != writer.block || by.atomics <= writer.atomics) return false;
  if (by.thread == writer.thread || writer.block_barriers < by.block_barriers) return true;
  return by.thread / kLanes == writer.thread / kLanes && writer.warp_barriers < by.warp_barriers;
}

bool GlobalWrites::IsOrdered(const Moment& now, const Writer& writer) const {
  if (writer.block == block_) {
    return writer.thread == now.thread || writer.block_barriers < now.block_barriers ||
           (writer.thread / kLanes == now.thread / kLanes &&
            writer.warp_barriers < now.warp_barriers);
  }
  for (const Acquire& acquire : acquires_) {
    const Moment& then = acquire.moment;
    const bool is_known =
        then.thread == now.thread || then.block_barriers < now.block_barriers ||
        (then.thread / kLanes == now.thread / kLanes && then.warp_barriers < now.warp_barriers);
    if (!is_known) continue;
    for (size_t i = 0; i < acquire.count; ++i) {
      if (Covers((*acquire.releases)[i], writer)) return true;
    }
  }
  return false;
}

GridFault GlobalWrites::Check(const Moment& now, const Writer& writer, const char* what) const {
  if (writer.block == 0 || IsOrdered(now, writer)) return {};
  return {what, writer.block, writer.thread};
}

GridFault GlobalWrites::Read(const Moment& now, const void* at, uint32_t bytes) const {
  if (used_ == 0) return {};
  const uint64_t address = reinterpret_cast<uintptr_t>(at);
  const Chunk* const chunk = Find(address / kChunkBytes);
  if (chunk == nullptr) return {};
  constexpr const char* kWhat = "reads global memory without order after the write of";
  if (chunk->split == 0) return Check(now, chunk->writer, kWhat);
  const Writer* const parts = split_.data() + size_t{chunk->split - 1} * kChunkBytes;
  for (uint32_t i = 0; i < bytes; ++i) {
    const GridFault fault = Check(now, parts[address % kChunkBytes + i], kWhat);
    if (fault.what != nullptr) return fault;
  }
  return {};
}

GridFault GlobalWrites::Write(const Moment& now, const void* at, uint32_t bytes) {
  const uint64_t address = reinterpret_cast<uintptr_t>(at);
  const Writer writer = {block_, now.thread, now.block_barriers, now.warp_barriers, atomics_};
  Chunk* const chunk = Make(address / kChunkBytes);
  constexpr const char* kWhat = "writes global memory without order after the write of";
  if (chunk->split == 0 && bytes == kChunkBytes) {
    const GridFault fault = Check(now, chunk->writer, kWhat);
    chunk->writer = writer;
    return fault;
  }
  if (chunk->split == 0) {
    split_.insert(split_.end(), kChunkBytes, chunk->writer);
    chunk->split = static_cast<uint32_t>(split_.size() / kChunkBytes);
  }
  Writer* const parts = split_.data() + size_t{chunk->split - 1} * kChunkBytes;
  for (uint32_t i = address % kChunkBytes; i < address % kChunkBytes + bytes; ++i) {
    const GridFault fault = Check(now, parts[i], kWhat);
    if (fault.what != nullptr) return fault;
    parts[i] = writer;
  }
  return {};
}

void GlobalWrites::Atomic(const Moment& now, const void* at) {
  ++atomics_;
  std::vector<Release>& releases = releases_[at];
  acquires_.push_back({now, &releases, releases.size()});
  releases.push_back({{block_, now.thread, now.block_barriers, now.warp_barriers, atomics_}});
}

}  // namespace cairn::simt::emulated
