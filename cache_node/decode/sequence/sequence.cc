#include "cache_node/decode/sequence/sequence.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

Sequence::Sequence(const SequenceId& id, std::shared_ptr<const Common> common,
                   std::vector<PinnedBlocks::Ref> pins, PageReservation reservation,
                   uint64_t reserve_tokens, BookCharge charge)
    : id_(id),
      common_(std::move(common)),
      block_tokens_(common_->map->layout().block_tokens),
      covered_block_(common_->first_block + static_cast<uint32_t>(pins.size())),
      charge_(std::move(charge)),
      pins_(std::move(pins)),
      reservation_(std::move(reservation)),
      capacity_(covered_tokens() + reserve_tokens),
      end_(covered_tokens()),
      lengths_(map().segment_count(), covered_tokens()),
      next_seal_(covered_block_) {
  for (const PinnedBlocks::Ref& ref : pins_) {
    slots_.push_back(reinterpret_cast<const std::byte*>(ref.pin().bytes().data()));
  }
  for (const PayloadMap::Part& part : map().parts()) {
    const auto lacks = std::find_if(pins_.begin(), pins_.end(), [&part](const auto& ref) {
      return !ref.pin().SegmentPresent(part.first_segment);
    });
    if (lacks == pins_.end()) continue;
    const uint64_t blocks = static_cast<uint64_t>(lacks - pins_.begin());
    std::fill_n(lengths_.begin() + static_cast<ptrdiff_t>(part.first_segment), part.layers,
                first_token() + blocks * block_tokens_);
  }
  FindEdge();
}

Sequence::Sequence(const Sequence& other, const SequenceId& id, uint64_t length, BookCharge charge)
    : id_(id),
      common_(other.common_),
      block_tokens_(other.block_tokens_),
      covered_block_(other.covered_block_),
      charge_(std::move(charge)),
      capacity_(length),
      end_(length),
      lengths_(other.lengths_),
      released_begin_(other.released_begin_),
      released_end_(other.released_end_),
      next_seal_(other.next_seal_),
      seals_stopped_(other.seals_stopped_) {}

Sequence::~Sequence() {
  if (seal_ != nullptr) seal_->sequence = nullptr;
}

uint64_t Sequence::length_tokens() const {
  uint64_t length = end_;
  for (const PayloadMap::Part& part : map().parts()) {
    if (!part.required) continue;
    const auto first = lengths_.begin() + static_cast<ptrdiff_t>(part.first_segment);
    length = std::min(length, *std::min_element(first, first + part.layers));
  }
  return length;
}

void Sequence::FindEdge() {
  edge_ = (length_tokens() / block_tokens_ + 1) * block_tokens_;
  lagging_ = 0;
  for (const PayloadMap::Part& part : map().parts()) {
    if (!part.required) continue;
    const auto first = lengths_.begin() + static_cast<ptrdiff_t>(part.first_segment);
    lagging_ += static_cast<size_t>(std::count_if(
        first, first + part.layers, [this](uint64_t length) { return length < edge_; }));
  }
}

SlotRun Sequence::Stored(uint32_t group, uint32_t slice, uint32_t layer) const {
  const std::optional<size_t> segment = map().FindSegment({group, slice, layer});
  CAIRN_CHECK(segment.has_value());
  return {.slots = slots_,
          .first_position = first_token(),
          .tokens = lengths_[*segment] - first_token()};
}

bool Sequence::PinsReadable() const {
  return std::all_of(pins_.begin(), pins_.end(),
                     [](const auto& ref) { return !ref || ref.pin().readable(); });
}

const PageRef* Sequence::PageOf(uint64_t block) const {
  if (block < covered_block_ || block - covered_block_ >= pages_.size()) return nullptr;
  const PageRef& page = pages_[block - covered_block_];
  return page ? &page : nullptr;
}

PageRef* Sequence::PageOf(uint64_t block) {
  return const_cast<PageRef*>(std::as_const(*this).PageOf(block));
}

bool Sequence::SealHolds(const PageRef& page) const {
  return seal_ != nullptr && seal_->page == page && seal_->spare.pages() > 0;
}

bool Sequence::CanWrite(uint64_t block) const {
  const PageRef* const page = PageOf(block);
  if (page == nullptr) return false;
  return !page->shared() || (page->uses() == 2 && SealHolds(*page));
}

void Sequence::PutPage(uint64_t block, PageRef page) {
  CAIRN_CHECK(block >= covered_block_ && block - covered_block_ <= pages_.size());
  const size_t at = block - covered_block_;
  if (at == pages_.size()) {
    pages_.emplace_back();
    slots_.push_back(nullptr);
    sealed_.push_back(false);
  }
  pages_[at] = std::move(page);
  slots_[block - common_->first_block] = pages_[at].bytes().data();
}

void Sequence::DropPage(PageRef page) {
  if (!page) return;  // It was given back before.
  if (SealHolds(page)) {
    reservation_.Join(std::move(seal_->spare));
    return;
  }
  reservation_.Return(std::move(page));
}

// To write all that may be appended.
uint64_t Sequence::PagesNeeded() const {
  const uint64_t length = length_tokens();
  if (length >= capacity_) return 0;
  const uint64_t first = length / block_tokens_;
  const uint64_t end = CeilDiv(capacity_, block_tokens_);
  const uint64_t there = std::clamp<uint64_t>(covered_block_ + pages_.size(), first, end);
  uint64_t needed = end - there;
  for (uint64_t block = first; block < there; ++block) needed += !CanWrite(block);
  return needed;
}

// The reservation has what the capacity needs, or the capacity falls.
void Sequence::KeepReserved() {
  const uint64_t needed = PagesNeeded();
  if (needed <= reservation_.pages()) return;
  if (reservation_.Grow(needed - reservation_.pages()).ok()) return;
  uint64_t left = reservation_.pages();
  for (uint64_t block = length_tokens() / block_tokens_; block * block_tokens_ < capacity_;
       ++block) {
    if (CanWrite(block)) continue;
    if (left == 0) {
      capacity_ = std::max(end_, block * block_tokens_);
      return;
    }
    --left;
  }
}

absl::Status Sequence::Truncate(uint64_t length) {
  if (length < covered_tokens()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "length_tokens ", length, ": the blocks that were pinned at the opening cover ",
        covered_tokens(), " tokens, which stay"));
  }
  if (released_end_ > released_begin_ && length < released().second) {
    return absl::InvalidArgumentError(absl::StrCat("length_tokens ", length, ": positions up to ",
                                                   released().second, " were given back"));
  }
  if (length >= end_) return absl::OkStatus();
  for (uint64_t& held : lengths_) held = std::min(held, length);
  end_ = length;
  if (later_tokens_.size() > length - std::min(length, later_base())) {
    later_tokens_.resize(length - std::min(length, later_base()));
  }
  const uint64_t full = length / block_tokens_;
  const uint64_t keys = common_->prompt.keys.size();
  later_keys_.resize(std::min<uint64_t>(later_keys_.size(), full - std::min(full, keys)));
  for (uint64_t at = full - covered_block_; at < sealed_.size(); ++at) {
    if (sealed_[at]) --sealed_count_;
    sealed_[at] = false;
  }
  next_seal_ = std::min(next_seal_, static_cast<uint32_t>(full));
  if (seal_ != nullptr && seal_->block >= full) seal_->stale = true;
  const uint64_t kept = CeilDiv(length, block_tokens_) - covered_block_;
  while (pages_.size() > kept) {
    DropPage(std::move(pages_.back()));
    pages_.pop_back();
    slots_.pop_back();
    sealed_.pop_back();
  }
  FindEdge();
  KeepReserved();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Sequence::ReleaseWindow(uint64_t before, uint64_t sinks) {
  const uint64_t length = length_tokens();
  if (before > length) {
    return absl::InvalidArgumentError(absl::StrCat("before_token ", before, ": all layers hold ",
                                                   length, " tokens, and the rest is to come"));
  }
  const uint64_t first =
      std::max<uint64_t>(common_->first_block, CeilDiv(std::min(sinks, before), block_tokens_));
  const uint64_t end = before / block_tokens_;
  if (end <= first) return 0;
  if (released_end_ > released_begin_ && first != released_begin_) {
    return absl::InvalidArgumentError(
        absl::StrCat("sink_tokens ", sinks, ": blocks were given back from position ",
                     released().first, " on; send the same sink_tokens each time"));
  }
  uint64_t given_back = 0;
  for (uint64_t block = std::max<uint64_t>(first, released_end_); block < end; ++block) {
    if (block < covered_block_) {
      pins_[block - common_->first_block] = PinnedBlocks::Ref();
    } else {
      pages_[block - covered_block_] = PageRef();
    }
    slots_[block - common_->first_block] = nullptr;
    ++given_back;
  }
  if (given_back > 0) {
    released_begin_ = static_cast<uint32_t>(first);
    released_end_ = static_cast<uint32_t>(end);
  }
  return given_back;
}

uint64_t Sequence::PagesOfFork(uint64_t reserve_tokens) const {
  if (reserve_tokens == 0) return 0;
  const uint64_t length = length_tokens();
  return CeilDiv(length + reserve_tokens, block_tokens_) - length / block_tokens_;
}

uint64_t Sequence::PagesToBeForked() const {
  const uint64_t length = length_tokens();
  const bool shares_last = length % block_tokens_ != 0 && capacity_ > length;
  return shares_last && CanWrite(length / block_tokens_) ? 1 : 0;
}

std::unique_ptr<Sequence> Sequence::Fork(const SequenceId& id, uint64_t reserve_tokens,
                                         PageReservation pages, BookCharge charge) const {
  const uint64_t length = length_tokens();
  auto fork = std::unique_ptr<Sequence>(new Sequence(*this, id, length, std::move(charge)));
  fork->reservation_ = std::move(pages);
  fork->capacity_ = length + reserve_tokens;
  for (uint64_t& held : fork->lengths_) held = std::min(held, length);
  for (const PinnedBlocks::Ref& ref : pins_) {
    fork->pins_.push_back(ref ? ref.Share() : PinnedBlocks::Ref());
  }
  const uint64_t blocks = CeilDiv(length, block_tokens_) - covered_block_;
  for (uint64_t i = 0; i < blocks; ++i) {
    fork->pages_.push_back(pages_[i] ? pages_[i].Share() : PageRef());
  }
  const auto slots_end = slots_.begin() + static_cast<ptrdiff_t>(pins_.size() + blocks);
  fork->slots_.assign(slots_.begin(), slots_end);
  const uint64_t later = length - std::min(length, later_base());
  const uint64_t tokens = std::min<uint64_t>(later, later_tokens_.size());
  fork->later_tokens_.assign(later_tokens_.begin(),
                             later_tokens_.begin() + static_cast<ptrdiff_t>(tokens));
  const uint64_t full = length / block_tokens_;
  const uint64_t prompt_keys = common_->prompt.keys.size();
  const uint64_t keys = std::min<uint64_t>(later_keys_.size(), full - std::min(full, prompt_keys));
  fork->later_keys_.assign(later_keys_.begin(), later_keys_.begin() + static_cast<ptrdiff_t>(keys));
  fork->sealed_.assign(sealed_.begin(), sealed_.begin() + static_cast<ptrdiff_t>(blocks));
  fork->sealed_count_ = sealed_count_;
  fork->FindEdge();
  return fork;
}

uint64_t Sequence::later_base() const {
  const uint64_t prompt = common_->prompt.tokens.size();
  return prompt == 0 ? covered_tokens() : prompt;
}

int64_t Sequence::TokenAt(uint64_t position) const {
  const std::vector<uint32_t>& prompt = common_->prompt.tokens;
  if (position < prompt.size()) return prompt[position];
  const uint64_t base = later_base();
  if (position < base || position - base >= later_tokens_.size()) return kNoToken;
  return later_tokens_[position - base];
}

absl::Status Sequence::Audit() const {
  const auto wrong = [this](absl::string_view what) {
    return absl::InternalError(absl::StrCat("sequence at ", first_token(), ": ", what));
  };
  const uint64_t length = length_tokens();
  for (const PayloadMap::Part& part : map().parts()) {
    for (size_t i = part.first_segment; i < part.first_segment + part.layers; ++i) {
      if (lengths_[i] > end_) return wrong("a layer is longer than the sequence");
      if (part.required && lengths_[i] < covered_tokens()) return wrong("a layer lost its prompt");
    }
  }
  if (end_ > capacity_) return wrong("it is longer than its capacity");
  if (pages_.size() != CeilDiv(end_, block_tokens_) - covered_block_) {
    return wrong("its pages do not cover it");
  }
  if (slots_.size() != pins_.size() + pages_.size()) return wrong("slots are missing");
  for (size_t i = 0; i < slots_.size(); ++i) {
    const uint64_t block = common_->first_block + i;
    const bool given_back = block >= released_begin_ && block < released_end_;
    const bool there = i < pins_.size() ? static_cast<bool>(pins_[i])
                                        : static_cast<bool>(pages_[i - pins_.size()]);
    if (there == given_back || (slots_[i] != nullptr) != there) return wrong("a slot is wrong");
  }
  if (capacity_ > end_ && PagesNeeded() > reservation_.pages()) {
    return wrong("its reservation does not reach its capacity");
  }
  if (edge_ != (length / block_tokens_ + 1) * block_tokens_) return wrong("its edge is wrong");
  if (sealed_.size() != pages_.size() ||
      static_cast<uint64_t>(std::count(sealed_.begin(), sealed_.end(), true)) != sealed_count_) {
    return wrong("its seals are miscounted");
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
