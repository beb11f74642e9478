#include "cache_node/store/space_seeker.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

SpaceSeeker::Verdict SpaceSeeker::Seek(StoreState* state, ClassSpace* space, Newcomer newcomer,
                                       uint64_t index_bytes, SlotRef* slot) {
  CAIRN_CHECK(!remake_.has_value());
  switch (MakeQuotaRoom(state, space, newcomer)) {
    case QuotaRoom::kThere:
      break;
    case QuotaRoom::kAgain:
      return Verdict::kAgain;
    case QuotaRoom::kOver:
      return Verdict::kQuota;
    case QuotaRoom::kDeclined:
      return Verdict::kDeclined;
  }
  SlotAnswer answer;
  switch (MakeIndexRoom(state, space, newcomer, index_bytes)) {
    case IndexRoom::kThere:
      answer = TakeSlot(state, space, newcomer, remakes_, refused_);
      break;
    case IndexRoom::kNone:
      break;
    case IndexRoom::kDeclined:
      return Verdict::kDeclined;
  }
  const bool tired = ++attempts_ > kAttemptsMax;
  switch (answer.kind) {
    case SlotAnswer::Kind::kSlot:
      *slot = answer.slot;
      return Verdict::kSlot;
    case SlotAnswer::Kind::kRemake:
      ++remakes_;
      remake_ =
          Remake{space->slot_class, answer.segment, answer.segment_bytes, std::move(answer.old)};
      return Verdict::kAgain;
    case SlotAnswer::Kind::kAgain:
      return tired ? Verdict::kNone : Verdict::kAgain;
    case SlotAnswer::Kind::kDeclined:
      return Verdict::kDeclined;
    case SlotAnswer::Kind::kNone:
      break;
  }
  return Verdict::kNone;
}

void SpaceSeeker::NextBlock() {
  CAIRN_CHECK(!remake_.has_value());
  attempts_ = 0;
  remakes_ = 0;
  refused_ = 0;
}

std::optional<SpaceSeeker::Remake> SpaceSeeker::TakeRemake() {
  return std::exchange(remake_, std::nullopt);
}

}  // namespace cairn::node
