// BlockPin and WriteClaim: what holds a block from outside the store.
#include <utility>

#include "cache_node/store/block_entry.h"
#include "cache_node/store/block_pin.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/write_claim.h"

namespace cairn::node {

BlockPin::BlockPin(BlockPin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      entry_(std::exchange(other.entry_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})) {}

BlockPin& BlockPin::operator=(BlockPin&& other) noexcept {
  if (this == &other) return *this;
  if (entry_ != nullptr) store_->Unpin(entry_);
  store_ = std::exchange(other.store_, nullptr);
  entry_ = std::exchange(other.entry_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  return *this;
}

BlockPin::~BlockPin() {
  if (entry_ != nullptr) store_->Unpin(entry_);
}

absl::Span<const uint64_t> BlockPin::digests() const {
  if (entry_ == nullptr) return {};
  return {entry_->digests.get(), entry_->map->segment_count()};
}

bool BlockPin::SegmentPresent(size_t segment_index) const {
  return entry_ != nullptr && entry_->SegmentPresent(segment_index);
}

bool BlockPin::readable() const { return entry_ != nullptr && entry_->Readable(); }

WriteClaim::WriteClaim(WriteClaim&& other) noexcept { *this = std::move(other); }

WriteClaim& WriteClaim::operator=(WriteClaim&& other) noexcept {
  if (this == &other) return *this;
  if (entry_ != nullptr) store_->DropClaim(*this);
  store_ = std::exchange(other.store_, nullptr);
  entry_ = std::exchange(other.entry_, nullptr);
  destination_ = std::exchange(other.destination_, {});
  already_in_ = std::exchange(other.already_in_, false);
  first_segment_ = other.first_segment_;
  segments_ = other.segments_;
  segment_bytes_ = std::exchange(other.segment_bytes_, {});
  whole_ = other.whole_;
  completes_ = other.completes_;
  token_ = other.token_;
  block_ = other.block_;
  digests_ = std::move(other.digests_);
  unhashed_ = other.unhashed_;
  landed_ = std::move(other.landed_);
  key_ = other.key_;
  first_ = other.first_;
  return *this;
}

WriteClaim::~WriteClaim() {
  if (entry_ != nullptr) store_->DropClaim(*this);
}

}  // namespace cairn::node
