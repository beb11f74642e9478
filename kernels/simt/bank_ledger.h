// BankLedger: bank conflicts in shared memory.
//
// There are 32 banks of 4 bytes, so eight lanes with 16 bytes each are served at once if their
// addresses differ in bits 4 to 6 (or are equal). Lanes run one after another here: the n-th access
// of each since the warp last met is taken to be one instruction if it is at the same place of the
// source. Of one warp; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/simt/site.h"
#include "kernels/simt/warp_operations.h"

namespace cairn::simt::emulated {

// How many times more than once a bank is needed to serve 16 bytes at each of `count` (at most 8)
// offsets.
uint32_t ConflictsOf(const uint32_t* offsets, uint32_t count);

class BankLedger {
 public:
  // A lane accesses 16 bytes.
  void Add(uint32_t lane, uint32_t offset, Site site);
  // The warp meets. Returns the conflicts since it last did.
  uint64_t Settle();

 private:
  struct Access {
    Site site;
    uint32_t lanes = 0;
    uint32_t offsets[kLanes];
  };

  uint32_t count_[kLanes] = {};  // Of accesses, by lane.
  std::vector<Access> accesses_;
};

}  // namespace cairn::simt::emulated
