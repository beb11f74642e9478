#include "cache_node/decode/sequence/pinned_blocks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::node {

PinnedBlocks::Ref& PinnedBlocks::Ref::operator=(Ref&& other) noexcept {
  Ref old(std::exchange(entry_, std::exchange(other.entry_, nullptr)));
  return *this;
}

PinnedBlocks::Ref::~Ref() {
  if (entry_ != nullptr) entry_->owner->Release(entry_);
}

PinnedBlocks::Ref PinnedBlocks::Ref::Share() const {
  CAIRN_CHECK(entry_ != nullptr && entry_->uses > 0);
  ++entry_->uses;
  return Ref(entry_);
}

const BlockPin& PinnedBlocks::Ref::pin() const {
  CAIRN_CHECK(entry_ != nullptr);
  return entry_->pin;
}

PinnedBlocks::~PinnedBlocks() { CAIRN_CHECK(entries_.empty() && bytes_ == 0); }

absl::StatusOr<std::vector<PinnedBlocks::Ref>> PinnedBlocks::Add(absl::string_view tenant,
                                                                 std::vector<BlockPin> pins) {
  const uint64_t tenant_max = options_.tenant_bytes_max != 0
                                  ? std::min(options_.tenant_bytes_max, options_.bytes_max)
                                  : options_.bytes_max - options_.bytes_max / 8;
  std::vector<Ref> refs;
  refs.reserve(pins.size());
  for (BlockPin& pin : pins) {
    CAIRN_CHECK(pin);
    const auto [it, fresh] = entries_.try_emplace(Key(tenant, pin.bytes().data()));
    Entry& entry = it->second;
    ++entry.uses;
    if (fresh) {
      entry.owner = this;
      entry.key = &it->first;
      entry.pin = std::move(pin);
      bytes_ += entry.pin.bytes().size();
      tenant_bytes_[tenant] += entry.pin.bytes().size();
    }
    refs.push_back(Ref(&entry));
    if (!fresh || (bytes_ <= options_.bytes_max && tenant_bytes_[tenant] <= tenant_max)) continue;
    const uint64_t has = tenant_bytes_[tenant];
    return absl::ResourceExhaustedError(absl::StrCat(
        "blocks pinned by sequences would be over a budget: ", has, " bytes of at most ",
        tenant_max, " of the tenant, ", bytes_, " of at most ", options_.bytes_max, " of all"));
  }
  return refs;
}

void PinnedBlocks::Release(Entry* entry) {
  CAIRN_CHECK(entry->uses > 0);
  if (--entry->uses > 0) return;
  const uint64_t bytes = entry->pin.bytes().size();
  const auto tenant = tenant_bytes_.find(entry->key->first);
  CAIRN_CHECK(tenant != tenant_bytes_.end() && tenant->second >= bytes && bytes_ >= bytes);
  tenant->second -= bytes;
  bytes_ -= bytes;
  if (tenant->second == 0) tenant_bytes_.erase(tenant);
  entries_.erase(Key(*entry->key));
}

absl::Status PinnedBlocks::Audit() const {
  uint64_t bytes = 0, charged = 0;
  for (const auto& [key, entry] : entries_) {
    if (entry.uses == 0 || !entry.pin) return absl::InternalError("a pin that nobody uses is held");
    bytes += entry.pin.bytes().size();
  }
  for (const auto& [tenant, sum] : tenant_bytes_) charged += sum;
  if (bytes != bytes_ || charged != bytes_)
    return absl::InternalError("pinned bytes are miscounted");
  return absl::OkStatus();
}

}  // namespace cairn::node
