// GlobalWrites: which thread of a grid wrote which bytes of global memory, so that an access by
// another thread without order between the two is found.
//
// Within a block barriers make order, as in SharedMemory. Between blocks only AtomicAdd does: a
// thread that adds to a word after others did has acquired what those released there; the rest of
// its block has once it synchronised with it. Reads are not remembered: a write that comes too
// early for a reader is not found here (the orders of lanes and blocks find it by its results). Nor
// is what an AtomicAdd itself changed. Of one launch; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernels/simt/shared_memory.h"

namespace cairn::simt::emulated {

// Of a block: blocks run one after another, and are counted over all launches.
struct GridFault {
  const char* what = nullptr;
  uint64_t block = 0;  // The other one.
  uint32_t thread = 0;
};

class GlobalWrites {
 public:
  void BeginLaunch();
  void BeginBlock(uint64_t block);

  // Of 1 to 16 bytes.
  GridFault Read(const Moment& now, const void* at, uint32_t bytes) const;
  GridFault Write(const Moment& now, const void* at, uint32_t bytes);
  void Atomic(const Moment& now, const void* at);

 private:
  static constexpr uint32_t kChunkBytes = 16;

  struct Writer {
    uint64_t block = 0;  // 0: nobody.
    uint32_t thread = 0;
    uint32_t block_barriers = 0;
    uint32_t warp_barriers = 0;
    uint32_t atomics = 0;  // That the grid had done.
  };
  // Bytes of one chunk: one writer for all, or one each at `split - 1` of split_.
  struct Chunk {
    uint64_t address = 0;  // Over 16; 0: empty.
    uint64_t launch = 0;
    Writer writer;
    uint32_t split = 0;
  };
  struct Release {
    Writer by;  // As a write at that moment would be.
  };
  // What a thread of the block at hand knows: the first `count` releases at a word.
  struct Acquire {
    Moment moment;
    const std::vector<Release>* releases;
    size_t count = 0;
  };

  const Chunk* Find(uint64_t address) const;
  Chunk* Make(uint64_t address);
  void Grow();
  bool IsOrdered(const Moment& now, const Writer& writer) const;
  static bool Covers(const Release& release, const Writer& writer);
  GridFault Check(const Moment& now, const Writer& writer, const char* what) const;

  uint64_t launch_ = 0;
  uint64_t block_ = 0;
  uint32_t atomics_ = 0;
  size_t used_ = 0;
  std::vector<Chunk> table_;
  std::vector<Writer> split_;  // Sixteen for each chunk that is split.
  std::unordered_map<const void*, std::vector<Release>> releases_;
  std::vector<Acquire> acquires_;
};

}  // namespace cairn::simt::emulated
