#include "cache_node/store/disk_index.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

// Keys are digests already: what is left is to fold in the partition and to spread what a test's
// short keys do not.
size_t HashOf(PartitionIndex partition, const BlockKey& key) {
  uint64_t low = 0;
  uint64_t high = 0;
  std::memcpy(&low, key.bytes.data(), sizeof(low));
  std::memcpy(&high, key.bytes.data() + sizeof(low), sizeof(high));
  uint64_t hash = low ^ (high + partition) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u;
  return static_cast<size_t>(hash ^ (hash >> 32));
}

absl::Status Wrong(const DiskNode& node, absl::string_view what) {
  return absl::InternalError(absl::StrCat("block ", ToHex(node.key.view()), " on disk: ", what));
}

}  // namespace

size_t DiskIndex::Hash::operator()(const Named& named) const {
  return HashOf(named.partition, *named.key);
}

size_t DiskIndex::Hash::operator()(DiskHandle handle) const {
  return HashOf(index->PartitionOf(handle), index->At(handle).key);
}

bool DiskIndex::Same::operator()(DiskHandle a, const Named& b) const {
  return index->At(a).key == *b.key && index->PartitionOf(a) == b.partition;
}

DiskIndex::DiskIndex(uint32_t shards, uint64_t bytes_max) : bytes_max_(bytes_max) {
  CAIRN_CHECK(shards >= 1 && shards <= 256);
  for (uint32_t i = 0; i < shards; ++i) shards_.push_back({Table(0, Hash{this}, Same{this}), {}});
}

DiskIndex::~DiskIndex() = default;

const DiskNode& DiskIndex::At(DiskHandle handle) const {
  CAIRN_CHECK(handle > 0 && handle <= nodes_made_);
  return chunks_[(handle - 1) / kChunkNodes][(handle - 1) % kChunkNodes];
}

DiskNode& DiskIndex::NodeAt(DiskHandle handle) {
  CAIRN_CHECK(handle > 0 && handle <= nodes_made_);
  return chunks_[(handle - 1) / kChunkNodes][(handle - 1) % kChunkNodes];
}

DiskHandle DiskIndex::NewNode() {
  if (free_ != 0) {
    const DiskHandle handle = free_;
    free_ = At(handle).scope_next;
    NodeAt(handle) = DiskNode{};
    return handle;
  }
  if (nodes_made_ % kChunkNodes == 0) chunks_.push_back(std::make_unique<DiskNode[]>(kChunkNodes));
  return ++nodes_made_;
}

DiskHandle DiskIndex::Find(PartitionIndex partition, const BlockKey& key) const {
  const Table& table = shards_[ShardOf(key)].table;
  auto it = table.find(Named{partition, &key});
  return it == table.end() ? 0 : *it;
}

DiskPlace DiskIndex::PlaceOf(DiskHandle handle) const {
  const DiskNode& node = At(handle);
  return {files_.At(node.file).number, node.slot};
}

ParentId DiskIndex::ParentOf(DiskHandle handle, PartitionIndex shared) const {
  const DiskNode& node = At(handle);
  CAIRN_CHECK(node.has_parent);
  return {node.parent_shared ? shared : PartitionOf(handle), node.parent};
}

DiskBlock DiskIndex::BlockOf(DiskHandle handle, uint64_t epoch) const {
  const DiskNode& node = At(handle);
  DiskBlock block;
  block.key = node.key;
  if (node.has_parent) block.parent = node.parent;
  block.parent_shared = node.parent_shared;
  block.depth = node.depth;
  block.sequence = node.sequence;
  block.epoch = epoch;
  block.expires_unix_ms = node.expires_unix_ms;
  block.priority = node.priority;
  block.payload_bytes = PayloadBytesOf(handle);
  block.provenance = {.writer = node.writer,
                      .written_unix_ms = int64_t{node.written_unix_s} * 1000};
  return block;
}

uint64_t DiskIndex::bytes() const {
  return size_ * kBytesPerBlock + expiring_ * kBytesPerExpiry +
         waiting_.size() * kBytesPerWaitingParent + scopes_.bytes() + files_.list_bytes();
}

bool DiskIndex::HasRoom() const {
  return bytes() + kBytesPerBlock + kBytesPerExpiry + kBytesPerWaitingParent +
             DiskFiles::kBytesPerSlot <=
         bytes_max_;
}

// A count of children follows the parent wherever it is: in its node, or waiting for it.
void DiskIndex::CountChild(PartitionIndex partition, const DiskNode& child, bool added) {
  if (!child.has_parent || child.parent_shared) return;
  if (const DiskHandle parent = Find(partition, child.parent); parent != 0) {
    uint32_t& children = NodeAt(parent).children;
    CAIRN_CHECK(added || children > 0);
    children += added ? 1 : -1;
    return;
  }
  const ParentId id{partition, child.parent};
  if (added) {
    ++waiting_[id];
    return;
  }
  auto it = waiting_.find(id);
  CAIRN_CHECK(it != waiting_.end() && it->second > 0);
  if (--it->second == 0) waiting_.erase(it);
}

void DiskIndex::Link(DiskHandle handle) {
  DiskNode& node = NodeAt(handle);
  DiskScopeRecord& scope = scopes_.At(node.scope);
  node.scope_previous = scope.last;
  if (scope.last != 0) {
    NodeAt(scope.last).scope_next = handle;
  } else {
    scope.first = handle;
  }
  scope.last = handle;
  scopes_.CountBlock(node.scope);
}

void DiskIndex::Unlink(DiskHandle handle) {
  DiskNode& node = NodeAt(handle);
  DiskScopeRecord& scope = scopes_.At(node.scope);
  if (node.scope_previous != 0) {
    NodeAt(node.scope_previous).scope_next = node.scope_next;
  } else {
    scope.first = node.scope_next;
  }
  if (node.scope_next != 0) {
    NodeAt(node.scope_next).scope_previous = node.scope_previous;
  } else {
    scope.last = node.scope_previous;
  }
  scopes_.UncountBlock(node.scope);
}

DiskHandle DiskIndex::Insert(DiskScopeIndex scope, DiskFileIndex file, uint32_t slot,
                             const DiskBlock& block) {
  if (!HasRoom()) return 0;
  const PartitionIndex partition = scopes_.At(scope).partition;
  CAIRN_CHECK(block.payload_bytes == scopes_.At(scope).block_bytes);
  const DiskHandle handle = NewNode();
  DiskNode& node = NodeAt(handle);
  node.key = block.key;
  node.live = true;
  node.has_parent = block.parent.has_value();
  if (node.has_parent) node.parent = *block.parent;
  node.parent_shared = block.parent_shared;
  node.sequence = block.sequence;
  node.scope = scope;
  node.file = file;
  node.slot = slot;
  node.depth = block.depth;
  Describe(handle, block);
  if (!waiting_.empty()) {
    if (auto it = waiting_.find({partition, block.key}); it != waiting_.end()) {
      node.children = it->second;
      waiting_.erase(it);
    }
  }
  Shard& shard = shards_[ShardOf(block.key)];
  CAIRN_CHECK_MSG(shard.table.insert(handle).second, "a block is put on disk twice");
  ++shard.sum.blocks;
  shard.sum.key_sum += FeedKeyDigest(block.key);
  ++size_;
  Link(handle);
  files_.Put(file, slot, handle, block.payload_bytes);
  CountChild(partition, node, true);
  return handle;
}

void DiskIndex::Describe(DiskHandle handle, const DiskBlock& block) {
  DiskNode& node = NodeAt(handle);
  expiring_ += (block.expires_unix_ms != 0 ? 1 : 0);
  expiring_ -= (node.expires_unix_ms != 0 ? 1 : 0);
  node.expires_unix_ms = block.expires_unix_ms;
  node.priority = block.priority;
  node.writer = static_cast<uint32_t>(block.provenance.writer);
  node.written_unix_s = static_cast<uint32_t>(block.provenance.written_unix_ms / 1000);
}

void DiskIndex::Move(DiskHandle handle, DiskFileIndex file, uint32_t slot, uint64_t sequence) {
  DiskNode& node = NodeAt(handle);
  files_.Take(node.file, node.slot, PayloadBytesOf(handle), node.used);
  files_.Put(file, slot, handle, PayloadBytesOf(handle));
  node.file = file;
  node.slot = slot;
  node.sequence = sequence;
  node.used = false;
}

void DiskIndex::Remove(DiskHandle handle) {
  DiskNode& node = NodeAt(handle);
  const PartitionIndex partition = PartitionOf(handle);
  Shard& shard = shards_[ShardOf(node.key)];
  files_.Take(node.file, node.slot, PayloadBytesOf(handle), node.used);
  Unlink(handle);
  CAIRN_CHECK(shard.table.erase(handle) == 1);
  --shard.sum.blocks;
  shard.sum.key_sum -= FeedKeyDigest(node.key);
  --size_;
  expiring_ -= (node.expires_unix_ms != 0 ? 1 : 0);
  if (node.children > 0) waiting_.emplace(ParentId{partition, node.key}, node.children);
  CountChild(partition, node, false);
  const DiskScopeIndex scope = node.scope;
  node = DiskNode{};
  node.scope_next = free_;
  free_ = handle;
  scopes_.DropIfUnused(scope);
}

void DiskIndex::MarkUsed(DiskHandle handle) {
  DiskNode& node = NodeAt(handle);
  if (node.used) return;
  node.used = true;
  files_.CountUsed(node.file);
}

std::vector<ParentId> DiskIndex::KeysOf(uint32_t shard) const {
  std::vector<ParentId> keys;
  keys.reserve(shards_[shard].table.size());
  for (const DiskHandle handle : shards_[shard].table) {
    keys.push_back({PartitionOf(handle), At(handle).key});
  }
  return keys;
}

absl::Status DiskIndex::Audit() const {
  absl::flat_hash_map<ParentId, uint32_t> children;
  uint64_t size = 0;
  uint64_t payload_bytes = 0;
  for (const Shard& shard : shards_) {
    ShardSums::TierSum sum;
    for (const DiskHandle handle : shard.table) {
      const DiskNode& node = At(handle);
      const PartitionIndex partition = PartitionOf(handle);
      if (Find(partition, node.key) != handle) return Wrong(node, "is not found");
      const DiskFile& file = files_.At(node.file);
      if (node.slot >= file.slots.size() || file.slots[node.slot] != handle) {
        return Wrong(node, "is not in its file's list");
      }
      if (node.has_parent && !node.parent_shared) ++children[{partition, node.parent}];
      ++sum.blocks;
      sum.key_sum += FeedKeyDigest(node.key);
      payload_bytes += PayloadBytesOf(handle);
    }
    size += sum.blocks;
    if (!(sum == shard.sum)) return absl::InternalError("a shard on disk has another digest");
  }
  if (size != size_ || payload_bytes != files_.payload_bytes()) {
    return absl::InternalError("blocks on disk are miscounted");
  }
  uint64_t waiting = 0;
  for (const auto& [id, count] : children) {
    const DiskHandle parent = Find(id.partition, id.key);
    if (parent != 0 && At(parent).children == count) continue;
    auto it = waiting_.find(id);
    if (parent != 0 || it == waiting_.end() || it->second != count) {
      return absl::InternalError("children on disk are miscounted");
    }
    ++waiting;
  }
  if (waiting != waiting_.size()) return absl::InternalError("a count waits for no child");
  for (const Shard& shard : shards_) {
    for (const DiskHandle handle : shard.table) {
      const DiskNode& node = At(handle);
      if (node.children > 0 && !children.contains({PartitionOf(handle), node.key})) {
        return Wrong(node, "counts children that it has not");
      }
    }
  }
  absl::flat_hash_map<PartitionIndex, uint64_t> by_partition;
  for (const auto& [id, index] : scopes_.by_digest()) {
    uint64_t blocks = 0;
    for (DiskHandle at = scopes_.At(index).first; at != 0; at = At(at).scope_next) ++blocks;
    if (blocks != scopes_.At(index).blocks) return absl::InternalError("a scope is miscounted");
    by_partition[id.first] += blocks;
  }
  for (const auto& [partition, blocks] : by_partition) {
    if (blocks != scopes_.BlocksOf(partition)) {
      return absl::InternalError("a partition's blocks on disk are miscounted");
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
