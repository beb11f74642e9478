#include "router/index/partition_table.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

// The fingerprint, then the tenant, without memory of its own.
class Name {
 public:
  Name(const Fingerprint& fingerprint, absl::string_view tenant)
      : bytes_(kFingerprintBytes + tenant.size()) {
    std::copy(fingerprint.bytes.begin(), fingerprint.bytes.end(), bytes_.begin());
    std::copy(tenant.begin(), tenant.end(), bytes_.begin() + kFingerprintBytes);
  }
  absl::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  absl::FixedArray<char, kFingerprintBytes + 64> bytes_;
};

}  // namespace

PartitionTable::PartitionTable(size_t partitions_max) : partitions_max_(partitions_max) {
  CAIRN_CHECK(partitions_max > 0);
}

std::optional<PartitionIndex> PartitionTable::Intern(const Fingerprint& fingerprint,
                                                     absl::string_view tenant) {
  const Name name(fingerprint, tenant);
  if (const auto found = by_name_.find(name.view()); found != by_name_.end()) return found->second;
  if (free_.empty() && partitions_.size() >= partitions_max_) ReclaimUnused();
  PartitionIndex partition = 0;
  if (!free_.empty()) {
    partition = free_.back();
    free_.pop_back();
  } else if (partitions_.size() < partitions_max_) {
    partition = static_cast<PartitionIndex>(partitions_.size());
    partitions_.emplace_back();
  } else {
    return std::nullopt;
  }
  partitions_[partition].name = std::string(name.view());
  by_name_.emplace(partitions_[partition].name, partition);
  return partition;
}

std::optional<PartitionIndex> PartitionTable::Find(const Fingerprint& fingerprint,
                                                   absl::string_view tenant) const {
  const auto found = by_name_.find(Name(fingerprint, tenant).view());
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

void PartitionTable::Retain(PartitionIndex partition) {
  CAIRN_CHECK(partition < partitions_.size());
  ++partitions_[partition].references;
}

void PartitionTable::Release(PartitionIndex partition) {
  CAIRN_CHECK(partition < partitions_.size() && partitions_[partition].references > 0);
  --partitions_[partition].references;
}

void PartitionTable::ReclaimUnused() {
  for (PartitionIndex partition = 0; partition < partitions_.size(); ++partition) {
    Partition& unused = partitions_[partition];
    if (unused.references > 0) continue;
    by_name_.erase(unused.name);
    unused.name.clear();
    free_.push_back(partition);
  }
}

}  // namespace cairn::router
