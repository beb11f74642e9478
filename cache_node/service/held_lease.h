// HeldLease: the lease that a lookup holds while it waits for blocks to be loaded.
//
// A lookup that is given up before it was answered ends it: nobody else knows of it. Move-only, not
// thread-safe; borrows the store, which must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cache_node/store/block_store.h"
#include "common/base/bytes16.h"

namespace cairn::node {

class HeldLease {
 public:
  HeldLease(BlockStore* store, std::string tenant, uint32_t readers)
      : store_(store), tenant_(std::move(tenant)), readers_(readers) {}
  ~HeldLease() { Hold(std::nullopt); }

  HeldLease(HeldLease&& other) noexcept
      : store_(other.store_),
        tenant_(std::move(other.tenant_)),
        readers_(other.readers_),
        id_(std::exchange(other.id_, std::nullopt)) {}
  HeldLease& operator=(HeldLease&&) = delete;

  const std::optional<LeaseId>& id() const { return id_; }

  // From now on this one; another that was held is ended.
  void Hold(const std::optional<LeaseId>& id);
  // It is the caller's now.
  void Release() { id_.reset(); }

 private:
  BlockStore* store_;
  std::string tenant_;
  uint32_t readers_;
  std::optional<LeaseId> id_;
};

}  // namespace cairn::node
