#include "kernels/simt/bank_ledger.h"

#include <algorithm>

namespace cairn::simt::emulated {
namespace {

constexpr uint32_t kBankGroups = 8;  // Of 16 bytes each.
constexpr uint32_t kLanesAtOnce = 8;

}  // namespace

uint32_t ConflictsOf(const uint32_t* offsets, uint32_t count) {
  uint32_t in_group[kBankGroups] = {};
  uint32_t most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_known = std::find(offsets, offsets + i, offsets[i]) != offsets + i;
    if (!is_known) most = std::max(most, ++in_group[offsets[i] / 16 % kBankGroups]);
  }
  return most > 0 ? most - 1 : 0;
}

void BankLedger::Add(uint32_t lane, uint32_t offset, Site site) {
  // A lane that went another way is at another place; it is counted apart.
  uint32_t at = count_[lane];
  while (at < accesses_.size() && accesses_[at].site != site) ++at;
  if (at == accesses_.size()) accesses_.push_back({site, 0, {}});
  accesses_[at].lanes |= 1u << lane;
  accesses_[at].offsets[lane] = offset;
  count_[lane] = at + 1;
}

uint64_t BankLedger::Settle() {
  if (accesses_.empty()) return 0;
  uint64_t conflicts = 0;
  for (const Access& access : accesses_) {
    for (uint32_t first = 0; first < kLanes; first += kLanesAtOnce) {
      uint32_t offsets[kLanesAtOnce];
      uint32_t count = 0;
      for (uint32_t l = first; l < first + kLanesAtOnce; ++l) {
        if ((access.lanes >> l & 1) != 0) offsets[count++] = access.offsets[l];
      }
      conflicts += ConflictsOf(offsets, count);
    }
  }
  accesses_.clear();
  std::fill(count_, count_ + kLanes, 0);
  return conflicts;
}

}  // namespace cairn::simt::emulated
