// Sequence: blocks that are full and can be published under their tokens.
#include <algorithm>

#include "cache_node/decode/sequence/sequence.h"
#include "cache_node/store/block_store.h"
#include "common/base/check.h"

namespace cairn::node {

bool Sequence::TokensKnown(uint64_t block) const {
  const uint64_t first = block * block_tokens_;
  for (uint64_t position = first; position < first + block_tokens_; ++position) {
    if (TokenAt(position) == kNoToken) return false;
  }
  return true;
}

const SequencePrompt::Region& Sequence::RegionOf(uint64_t block) const {
  const std::vector<SequencePrompt::Region>& regions = common_->prompt.regions;
  CAIRN_CHECK(!regions.empty());
  const bool second = regions.size() > 1 && block >= regions[1].first_block;
  return regions[second ? 1 : 0];
}

// Of the tenant's own region, with a key that its tokens or its id give.
bool Sequence::MaySeal(uint64_t block) const {
  const SequencePrompt& prompt = common_->prompt;
  if (prompt.regions.empty()) return false;
  const std::string& owner = RegionOf(block).scope.tenant;
  if (owner != common_->tenant) return false;
  if (owner == kPublicTenant && !common_->seal_public) return false;
  if (prompt.rules.key_scheme == KeyScheme::kCairn) return true;
  return block < prompt.external_ids.size() && block < prompt.keys.size();
}

// Behind those of a first region that is not the tenant's.
uint64_t Sequence::NextSeal() const {
  const std::vector<SequencePrompt::Region>& regions = common_->prompt.regions;
  if (regions.size() < 2 || regions[0].scope.tenant == common_->tenant) return next_seal_;
  return std::max(next_seal_, regions[1].first_block);
}

bool Sequence::HasSeal() const {
  if (seal_ != nullptr || seals_stopped_) return false;
  const uint64_t block = NextSeal();
  if (block >= edge_ / block_tokens_ - 1 || PageOf(block) == nullptr) return false;
  return MaySeal(block) && TokensKnown(block);
}

std::optional<BlockKey> Sequence::KeyOf(const BlockHasher& hasher, uint64_t block) {
  const SequencePrompt& prompt = common_->prompt;
  if (block < prompt.keys.size()) return prompt.keys[block];
  if (prompt.rules.key_scheme != KeyScheme::kCairn) return std::nullopt;
  std::vector<uint32_t> tokens(block_tokens_);
  while (prompt.keys.size() + later_keys_.size() <= block) {
    const uint64_t next = prompt.keys.size() + later_keys_.size();
    if (!TokensKnown(next)) return std::nullopt;
    const SequencePrompt::Region& region = RegionOf(next);
    BlockKey before = prompt.rules.fingerprint.root();
    if (next > 0) before = later_keys_.empty() ? prompt.keys[next - 1] : later_keys_.back();
    if (next == region.first_block) before = EnterScope(before, region.scope);
    for (uint32_t i = 0; i < block_tokens_; ++i) {
      tokens[i] = static_cast<uint32_t>(TokenAt(next * block_tokens_ + i));
    }
    const auto extra = prompt.extras.find(static_cast<uint32_t>(next));
    later_keys_.push_back(hasher.Block(
        before, tokens, extra == prompt.extras.end() ? "" : EncodeExtra(extra->second)));
  }
  return later_keys_[block - prompt.keys.size()];
}

bool Sequence::BeginSeal(const BlockHasher& hasher, SequenceSeal* seal, SealTask* task) {
  CAIRN_CHECK(HasSeal());
  const uint64_t block = NextSeal();
  const SequencePrompt& prompt = common_->prompt;
  const SequencePrompt::Region& region = RegionOf(block);
  const std::optional<BlockKey> key = KeyOf(hasher, block);
  if (!key.has_value()) {
    seals_stopped_ = true;
    return false;
  }
  task->tenant = common_->tenant;
  task->writer = common_->writer;
  task->fingerprint = common_->fingerprint;
  task->epoch = common_->epoch;
  task->map = common_->map;
  task->rules = prompt.rules;
  task->scope = region.scope;
  if (region.first_block > 0) task->region_parent = *KeyOf(hasher, region.first_block - 1);
  if (block > region.first_block) task->parent = *KeyOf(hasher, block - 1);
  task->key = *key;
  for (uint64_t i = 0; i < block_tokens_; ++i) {
    task->tokens.push_back(static_cast<uint32_t>(TokenAt(block * block_tokens_ + i)));
  }
  const auto extra = prompt.extras.find(static_cast<uint32_t>(block));
  if (extra != prompt.extras.end()) task->extra = extra->second;
  if (prompt.rules.key_scheme == KeyScheme::kExternal) {
    task->external_id = prompt.external_ids[block];
  }
  const uint64_t end = (block + 1) * block_tokens_;
  for (size_t i = 0; i < map().parts().size(); ++i) {
    const PayloadMap::Part& part = map().parts()[i];
    const auto first = lengths_.begin() + static_cast<ptrdiff_t>(part.first_segment);
    if (*std::min_element(first, first + part.layers) >= end) task->parts.push_back(i);
  }
  seal->sequence = this;
  seal->block = static_cast<uint32_t>(block);
  seal->page = PageOf(block)->Share();
  task->page = seal->page.bytes();
  seal_ = seal;
  return true;
}

bool Sequence::KeepForSeals() {
  const bool under_way = seal_ != nullptr && !seal_->stale;
  if (!under_way && !HasSeal()) return false;
  const uint64_t first = NextSeal() + (under_way ? 1 : 0);
  const uint64_t end = edge_ / block_tokens_ - 1;
  for (size_t i = 0; i < pages_.size(); ++i) {
    const uint64_t block = covered_block_ + i;
    if (block < first || block >= end) pages_[i] = PageRef();
  }
  if (seal_ != nullptr) seal_->spare = PageReservation();
  reservation_ = PageReservation();
  pins_.clear();
  slots_.clear();
  return true;
}

void Sequence::EndSeal(SealOutcome outcome) {
  CAIRN_CHECK(seal_ != nullptr && seal_->sequence == this);
  const SequenceSeal& seal = *std::exchange(seal_, nullptr);
  if (seal.stale) return;  // Of tokens that the sequence has no more.
  CAIRN_CHECK(seal.block == NextSeal());
  switch (outcome) {
    case SealOutcome::kSealed:
    case SealOutcome::kThere:
      sealed_[seal.block - covered_block_] = true;
      ++sealed_count_;
      next_seal_ = seal.block + 1;
      return;
    case SealOutcome::kInProgress:
    case SealOutcome::kNoSpace:
      return;
    case SealOutcome::kDeclined:
    case SealOutcome::kParentMissing:
    case SealOutcome::kRefused:
      seals_stopped_ = true;
      return;
  }
}

}  // namespace cairn::node
