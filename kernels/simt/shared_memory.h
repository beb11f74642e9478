// SharedMemory: a block's shared memory, and who touched each byte of it when.
//
// Two accesses of one byte, one of them a write, by two threads are in order if a barrier lies
// between them: one of the block, or one of the warp that both are in. Barriers are counted, so a
// byte remembers the counts at its last write and at its last reads. Memory starts a block as NaNs
// of every float format, unwritten; so do bytes that an asynchronous copy is under way to.
//
// For each 16 bytes there is one cell, and one for each byte once they are touched in parts. Not
// thread-safe; offsets are within the block's bytes (the caller looks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cairn::simt::emulated {

// Of a thread: barriers that its block and its warp have passed. Counts go on from block to block.
struct Moment {
  uint32_t thread = 0;
  uint32_t block_barriers = 0;
  uint32_t warp_barriers = 0;
};

// What is wrong with an access; nothing if `what` is null.
struct AccessFault {
  const char* what = nullptr;
  uint32_t other = 0;  // The thread that accessed it before.
  bool has_other = false;
};

class SharedMemory {
 public:
  static constexpr uint32_t kBytesMax = 227 << 10;  // Of a block, on sm_90.
  static constexpr int kUnwritten = 0xff;

  SharedMemory();

  // `block_barriers`: at its start; above all that came before.
  void BeginBlock(uint32_t bytes, uint32_t block_barriers);
  // Forgets copies under way: a block was given up.
  void Reset();

  uint32_t bytes() const { return bytes_; }
  std::byte* At(uint32_t offset) { return memory_.get() + offset; }

  // Of 1, 2, 4, 8 or 16 bytes, aligned to them.
  AccessFault Read(const Moment& now, uint32_t offset, uint32_t bytes);
  AccessFault Write(const Moment& now, uint32_t offset, uint32_t bytes);
  // 16 bytes that the whole warp reads at once, whoever gave the address.
  AccessFault ReadByWarp(const Moment& now, uint32_t offset);
  // 16 bytes that are written between the two calls; nobody may touch them before the second.
  AccessFault BeginCopy(const Moment& now, uint32_t offset);
  void LandCopy(const Moment& now, uint32_t offset);

 private:
  // Readers are one thread, several of a warp, or several of a block.
  struct Cell {
    uint32_t write_block_barriers = 0;
    uint32_t write_warp_barriers = 0;
    uint32_t read_block_barriers = 0;
    uint32_t read_warp_barriers = 0;
    uint16_t writer = 0;
    uint16_t reader = 0;
    bool copy_under_way = false;
  };
  static constexpr uint32_t kChunkBytes = 16;
  static constexpr uint16_t kOneWarp = 0x4000;  // Plus the warp.
  static constexpr uint16_t kManyWarps = 0x8000;

  template <class Touch>
  AccessFault TouchCells(uint32_t offset, uint32_t bytes, const Touch& touch);
  AccessFault ReadCell(const Moment& now, Cell* cell) const;
  AccessFault ReadCellByWarp(const Moment& now, Cell* cell) const;
  AccessFault WriteCell(const Moment& now, Cell* cell) const;
  static bool IsOrdered(const Moment& now, uint32_t thread, uint32_t block_barriers,
                        uint32_t warp_barriers);
  AccessFault CheckWritten(const Cell& cell) const;
  static void AddReader(const Moment& now, uint16_t reader, Cell* cell);

  struct FreeBytes {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], FreeBytes> memory_;  // Aligned as on hardware.
  uint32_t bytes_ = 0;
  uint32_t block_begin_ = 0;  // In block barriers: what is older was not written by this one.
  std::vector<Cell> chunks_;  // Of those that are not split.
  std::vector<Cell> split_bytes_;
  std::vector<uint8_t> is_split_;
};

}  // namespace cairn::simt::emulated
