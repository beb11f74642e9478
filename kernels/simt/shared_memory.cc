#include "kernels/simt/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cairn::simt::emulated {
namespace {

constexpr uint32_t kLanes = 32;
constexpr std::align_val_t kAlignment{1024};

}  // namespace

void SharedMemory::FreeBytes::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kAlignment);
}

SharedMemory::SharedMemory()
    : memory_(static_cast<std::byte*>(::operator new(kBytesMax, kAlignment))) {}

void SharedMemory::BeginBlock(uint32_t bytes, uint32_t block_barriers) {
  bytes_ = bytes;
  block_begin_ = block_barriers;
  const uint32_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  if (chunks_.size() < chunks) {
    chunks_.resize(chunks);
    split_bytes_.resize(size_t{chunks} * kChunkBytes);
    is_split_.resize(chunks);
  }
  std::memset(memory_.get(), kUnwritten, bytes);
}

void SharedMemory::Reset() {
  std::fill(chunks_.begin(), chunks_.end(), Cell{});
  std::fill(is_split_.begin(), is_split_.end(), uint8_t{0});
}

bool SharedMemory::IsOrdered(const Moment& now, uint32_t thread, uint32_t block_barriers,
                             uint32_t warp_barriers) {
  if (block_barriers < now.block_barriers) return true;
  return thread / kLanes == now.thread / kLanes && warp_barriers < now.warp_barriers;
}

// A full write of a split chunk makes it one again: what was read of it before is in order.
template <class Touch>
AccessFault SharedMemory::TouchCells(uint32_t offset, uint32_t bytes, const Touch& touch) {
  const uint32_t chunk = offset / kChunkBytes;
  Cell* const parts = split_bytes_.data() + size_t{chunk} * kChunkBytes;
  if (is_split_[chunk] == 0) {
    if (bytes == kChunkBytes) return touch(&chunks_[chunk]);
    std::fill(parts, parts + kChunkBytes, chunks_[chunk]);
    is_split_[chunk] = 1;
  }
  const uint32_t begin = offset % kChunkBytes;
  for (uint32_t i = begin; i < begin + bytes; ++i) {
    const AccessFault fault = touch(&parts[i]);
    if (fault.what != nullptr) return fault;
  }
  return {};
}

AccessFault SharedMemory::CheckWritten(const Cell& cell) const {
  if (cell.copy_under_way) {
    return {"reads bytes that an asynchronous copy is under way to, of", cell.writer, true};
  }
  if (cell.write_block_barriers < block_begin_) {
    return {"reads shared memory that nobody wrote", 0, false};
  }
  return {};
}

void SharedMemory::AddReader(const Moment& now, uint16_t reader, Cell* cell) {
  const uint16_t warp = static_cast<uint16_t>(kOneWarp | now.thread / kLanes);
  if (cell->read_block_barriers < now.block_barriers) {
    cell->reader = reader;
  } else if (cell->reader != reader) {
    const bool same_warp = cell->reader == warp ||
                           (cell->reader < kOneWarp && (kOneWarp | cell->reader / kLanes) == warp);
    cell->reader = same_warp ? warp : kManyWarps;
  }
  cell->read_block_barriers = now.block_barriers;
  cell->read_warp_barriers = now.warp_barriers;
}

AccessFault SharedMemory::ReadCell(const Moment& now, Cell* cell) const {
  const AccessFault fault = CheckWritten(*cell);
  if (fault.what != nullptr) return fault;
  if (cell->writer != now.thread &&
      !IsOrdered(now, cell->writer, cell->write_block_barriers, cell->write_warp_barriers)) {
    return {"reads shared memory without a barrier after the write of", cell->writer, true};
  }
  AddReader(now, static_cast<uint16_t>(now.thread), cell);
  return {};
}

AccessFault SharedMemory::ReadCellByWarp(const Moment& now, Cell* cell) const {
  const AccessFault fault = CheckWritten(*cell);
  if (fault.what != nullptr) return fault;
  if (!IsOrdered(now, cell->writer, cell->write_block_barriers, cell->write_warp_barriers)) {
    return {"'s warp reads shared memory without a barrier after the write of", cell->writer, true};
  }
  AddReader(now, static_cast<uint16_t>(kOneWarp | now.thread / kLanes), cell);
  return {};
}

AccessFault SharedMemory::WriteCell(const Moment& now, Cell* cell) const {
  if (cell->copy_under_way) {
    return {"writes bytes that an asynchronous copy is under way to, of", cell->writer, true};
  }
  const bool written = cell->write_block_barriers >= block_begin_;
  if (written && cell->writer != now.thread &&
      !IsOrdered(now, cell->writer, cell->write_block_barriers, cell->write_warp_barriers)) {
    return {"writes shared memory without a barrier after the write of", cell->writer, true};
  }
  if (cell->read_block_barriers == now.block_barriers && cell->reader != now.thread) {
    const uint32_t reader = cell->reader;
    const uint32_t first = reader < kOneWarp ? reader : (reader - kOneWarp) * kLanes;
    if (reader == kManyWarps) {
      return {"writes shared memory without a barrier after reads of several warps", 0, false};
    }
    if (!IsOrdered(now, first, cell->read_block_barriers, cell->read_warp_barriers)) {
      return {"writes shared memory without a barrier after the read of, or of the warp of", first,
              true};
    }
  }
  cell->write_block_barriers = now.block_barriers;
  cell->write_warp_barriers = now.warp_barriers;
  cell->writer = static_cast<uint16_t>(now.thread);
  cell->read_block_barriers = 0;
  return {};
}

AccessFault SharedMemory::Read(const Moment& now, uint32_t offset, uint32_t bytes) {
  return TouchCells(offset, bytes, [&](Cell* cell) { return ReadCell(now, cell); });
}

AccessFault SharedMemory::ReadByWarp(const Moment& now, uint32_t offset) {
  return TouchCells(offset, kChunkBytes, [&](Cell* cell) { return ReadCellByWarp(now, cell); });
}

AccessFault SharedMemory::Write(const Moment& now, uint32_t offset, uint32_t bytes) {
  const AccessFault fault =
      TouchCells(offset, bytes, [&](Cell* cell) { return WriteCell(now, cell); });
  const uint32_t chunk = offset / kChunkBytes;
  if (bytes == kChunkBytes && is_split_[chunk] != 0 && fault.what == nullptr) {
    chunks_[chunk] = split_bytes_[size_t{chunk} * kChunkBytes];
    is_split_[chunk] = 0;
  }
  return fault;
}

AccessFault SharedMemory::BeginCopy(const Moment& now, uint32_t offset) {
  const AccessFault fault = Write(now, offset, kChunkBytes);
  if (fault.what == nullptr) {
    chunks_[offset / kChunkBytes].copy_under_way = true;
    std::memset(At(offset), kUnwritten, kChunkBytes);
  }
  return fault;
}

void SharedMemory::LandCopy(const Moment& now, uint32_t offset) {
  Cell& cell = chunks_[offset / kChunkBytes];
  cell.copy_under_way = false;
  cell.write_block_barriers = now.block_barriers;
  cell.write_warp_barriers = now.warp_barriers;
}

}  // namespace cairn::simt::emulated
