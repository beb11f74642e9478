// PinnedBlocks: the stored blocks that running sequences read, each pinned once a tenant however
// many sequences read it.
//
// What is pinned cannot be evicted, so it has a budget, of all and of each tenant; a block counts
// once for each tenant that has it pinned. Not thread-safe. Must outlive what it gave out; ends
// before the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/block_pin.h"

namespace cairn::node {

class PinnedBlocks {
 private:
  struct Entry;

 public:
  struct Options {
    uint64_t bytes_max = 0;
    uint64_t tenant_bytes_max = 0;  // Of one tenant. 0: seven eighths of all.
  };

  // One use of a pinned block. Move-only; the pin ends with its last use.
  class Ref {
   public:
    Ref() = default;
    Ref(Ref&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Ref& operator=(Ref&& other) noexcept;
    ~Ref();

    explicit operator bool() const { return entry_ != nullptr; }
    // REQUIRES of these: not empty.
    Ref Share() const;
    const BlockPin& pin() const;

   private:
    friend class PinnedBlocks;
    explicit Ref(Entry* entry) : entry_(entry) {}

    Entry* entry_ = nullptr;
  };

  explicit PinnedBlocks(const Options& options) : options_(options) {}
  ~PinnedBlocks();

  PinnedBlocks(const PinnedBlocks&) = delete;
  PinnedBlocks& operator=(const PinnedBlocks&) = delete;

  // A use of each. RESOURCE_EXHAUSTED: they are over a budget, and none is taken.
  absl::StatusOr<std::vector<Ref>> Add(absl::string_view tenant, std::vector<BlockPin> pins);

  uint64_t bytes() const { return bytes_; }
  size_t size() const { return entries_.size(); }

  absl::Status Audit() const;

 private:
  using Key = std::pair<std::string, const uint8_t*>;  // Tenant, and where the block lies.
  struct Entry {
    PinnedBlocks* owner = nullptr;
    const Key* key = nullptr;
    BlockPin pin;
    uint64_t uses = 0;
  };

  void Release(Entry* entry);

  const Options options_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<std::string, uint64_t> tenant_bytes_;
  absl::node_hash_map<Key, Entry> entries_;
};

}  // namespace cairn::node
