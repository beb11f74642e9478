#include "cache_node/store/block_families.h"

#include "common/base/check.h"

namespace cairn::node {
namespace {

bool Holds(const BlockEntry& child, const Family& family) {
  return child.partition == family.id.partition;
}

void LinkFirst(Family* family, BlockEntry* child) {
  child->family_next = family->first;
  if (family->first != nullptr) family->first->family_previous = child;
  family->first = child;
  if (family->last == nullptr) family->last = child;
}

void LinkLast(Family* family, BlockEntry* child) {
  child->family_previous = family->last;
  if (family->last != nullptr) family->last->family_next = child;
  family->last = child;
  if (family->first == nullptr) family->first = child;
}

void Unlink(Family* family, BlockEntry* child) {
  (child->family_previous != nullptr ? child->family_previous->family_next : family->first) =
      child->family_next;
  (child->family_next != nullptr ? child->family_next->family_previous : family->last) =
      child->family_previous;
  child->family_previous = nullptr;
  child->family_next = nullptr;
}

}  // namespace

bool BlockFamilies::Fits(const ParentId& id, uint32_t depth) const {
  auto it = families_.find(id);
  if (it == families_.end() || it->second->first == nullptr) return true;
  return it->second->first->depth == depth + 1;
}

bool BlockFamilies::FitsUnder(const ParentId& id, uint32_t depth) const {
  auto it = families_.find(id);
  return it == families_.end() || it->second->first == nullptr || it->second->first->depth == depth;
}

bool BlockFamilies::Holding(const ParentId& id) const {
  auto it = families_.find(id);
  return it != families_.end() && it->second->holding > 0;
}

void BlockFamilies::Join(BlockEntry* child, const ParentId& parent_id, BlockEntry* parent,
                         bool below) {
  CAIRN_CHECK(child->family == nullptr);
  CAIRN_CHECK(parent == nullptr ||
              (parent->key == parent_id.key && parent->partition == parent_id.partition));
  std::unique_ptr<Family>& slot = families_[parent_id];
  if (slot == nullptr) {
    slot = std::make_unique<Family>();
    slot->id = parent_id;
    slot->parent = parent;
    slot->below = parent == nullptr && below;
    slot->orphans = parent == nullptr ? !below : parent->orphan;
    if (parent != nullptr) {
      CAIRN_CHECK(parent->children == nullptr);
      parent->children = slot.get();
    }
  }
  Family* family = slot.get();
  CAIRN_CHECK(family->parent == parent && (parent != nullptr || family->below == below));
  CAIRN_CHECK(parent == nullptr || child->depth == parent->depth + 1);
  child->family = family;
  child->orphan = family->orphans;
  ++family->children;
  if (Holds(*child, *family)) {
    ++family->holding;
    LinkFirst(family, child);
  } else {
    LinkLast(family, child);
  }
}

BlockEntry* BlockFamilies::Leave(BlockEntry* child) {
  Family* family = child->family;
  if (family == nullptr) return nullptr;
  if (family->cursor == child) family->cursor = child->family_next;
  Unlink(family, child);
  child->family = nullptr;
  CAIRN_CHECK(family->children > 0);
  --family->children;
  BlockEntry* parent = nullptr;
  if (Holds(*child, *family)) {
    CAIRN_CHECK(family->holding > 0);
    --family->holding;
    parent = family->parent;
  }
  DropIfEmpty(family);
  return parent;
}

void BlockFamilies::ParentArrived(BlockEntry* parent) {
  auto it = families_.find(ParentId{parent->partition, parent->key});
  if (it == families_.end()) return;
  Family* family = it->second.get();
  CAIRN_CHECK(family->parent == nullptr && parent->children == nullptr);
  CAIRN_CHECK(family->first == nullptr || family->first->depth == parent->depth + 1);
  family->parent = parent;
  family->below = false;
  parent->children = family;
  SetOrphans(family, parent->orphan);
}

void BlockFamilies::ParentLeft(BlockEntry* parent, bool below) {
  Family* family = parent->children;
  if (family == nullptr) return;
  CAIRN_CHECK(family->parent == parent);
  family->parent = nullptr;
  family->below = below;
  parent->children = nullptr;
  SetOrphans(family, !below);
}

void BlockFamilies::BelowChanged(const ParentId& id, bool below) {
  if (families_.empty()) return;
  auto it = families_.find(id);
  if (it == families_.end()) return;
  Family* family = it->second.get();
  CAIRN_CHECK(family->parent == nullptr);
  family->below = below;
  SetOrphans(family, !below);
}

void BlockFamilies::SetOrphans(Family* family, bool orphans) {
  if (family->orphans == orphans) return;
  family->orphans = orphans;
  family->cursor = family->first;
  if (family->queued) return;
  family->queued = true;
  work_.push_back(family);
}

BlockEntry* BlockFamilies::Step() {
  if (work_.empty()) return nullptr;
  Family* family = work_.front();
  CAIRN_CHECK(family->queued);
  BlockEntry* child = family->cursor;
  if (child == nullptr) {
    work_.pop_front();
    family->queued = false;
    DropIfEmpty(family);
    return nullptr;
  }
  family->cursor = child->family_next;
  if (child->orphan == family->orphans) return nullptr;
  child->orphan = family->orphans;
  if (child->children != nullptr) SetOrphans(child->children, child->orphan);
  return child;
}

void BlockFamilies::DropIfEmpty(Family* family) {
  if (family->children > 0 || family->queued) return;
  CAIRN_CHECK(family->first == nullptr && family->last == nullptr && family->holding == 0 &&
              family->staying == 0);
  if (family->parent != nullptr) family->parent->children = nullptr;
  CAIRN_CHECK(families_.erase(ParentId(family->id)) == 1);
}

absl::Status BlockFamilies::AuditFamily(const Family& family) const {
  uint32_t children = 0;
  uint32_t holding = 0;
  uint32_t staying = 0;
  for (const BlockEntry* child = family.first; child != nullptr; child = child->family_next) {
    ++children;
    if (Holds(*child, family)) ++holding;
    if (Holds(*child, family) && child->stays()) ++staying;
    if (child->family != &family) return absl::InternalError("a child knows another family");
    if (!family.queued && child->orphan != family.orphans) {
      return absl::InternalError("a child is not what its family is: orphan or not");
    }
  }
  if (children != family.children || holding != family.holding || staying != family.staying) {
    return absl::InternalError("a family miscounts its children");
  }
  if (family.parent != nullptr && family.parent->children != &family) {
    return absl::InternalError("a parent knows another family");
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
