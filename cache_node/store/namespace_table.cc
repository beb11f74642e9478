#include "cache_node/store/namespace_table.h"

#include "absl/strings/str_cat.h"
#include "cache_node/store/namespace_difference.h"
#include "common/base/check.h"

namespace cairn::node {

NamespaceTable::NamespaceTable(size_t namespaces_max)
    : namespaces_max_(namespaces_max), partitions_(1) {}

absl::StatusOr<NamespaceTable::Registration> NamespaceTable::Register(
    absl::string_view tenant, absl::string_view name, const Fingerprint& fingerprint,
    const Namespace& fields, const PayloadMap& map) {
  const std::pair<std::string, std::string> label(tenant, name);
  auto bound = labels_.find(label);
  if (bound != labels_.end() && bound->second->fingerprint != fingerprint &&
      !bound->second->retired) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the name '", name,
        "' is bound to another namespace: ", DescribeDifference(bound->second->fields, fields),
        "; use another name, or retire the bound namespace first"));
  }
  if (bound == labels_.end() && labels_.size() >= kLabelsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this node keeps at most ", kLabelsMax, " names of namespaces: use one that is there"));
  }
  NamespaceRecord* record = Find(fingerprint);
  if (record == nullptr) {
    if (records_.size() >= namespaces_max_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this node keeps at most ", namespaces_max_,
                       " namespaces, retired ones among them, until it is started anew"));
    }
    records_.push_back(std::make_unique<NamespaceRecord>(fingerprint, fields, map));
    record = records_.back().get();
    record->index = static_cast<uint32_t>(records_.size() - 1);
    CAIRN_CHECK(by_fingerprint_.emplace(fingerprint, record).second);
  }
  const bool created = bound == labels_.end() || bound->second != record || record->retired;
  if (record->retired) {
    CAIRN_CHECK(record->partitions.empty());
    record->retired = false;
  }
  if (bound != labels_.end()) bound->second->labels.erase(label);
  labels_[label] = record;
  record->labels.insert(label);
  return Registration{record, created};
}

NamespaceRecord* NamespaceTable::Find(const Fingerprint& fingerprint) const {
  auto it = by_fingerprint_.find(fingerprint);
  return it == by_fingerprint_.end() ? nullptr : it->second;
}

NamespaceRecord* NamespaceTable::FindLive(const Fingerprint& fingerprint) const {
  NamespaceRecord* record = Find(fingerprint);
  return record == nullptr || record->retired ? nullptr : record;
}

const NamespaceRecord& NamespaceTable::At(uint32_t index) const {
  CAIRN_CHECK(index < records_.size());
  return *records_[index];
}

std::vector<PartitionIndex> NamespaceTable::Retire(NamespaceRecord* record) {
  CAIRN_CHECK(!record->retired);
  record->retired = true;
  record->epoch.fetch_add(1, std::memory_order_acq_rel);
  std::vector<PartitionIndex> partitions;
  for (const auto& [tenant, partition] : record->partitions) partitions.push_back(partition);
  record->partitions.clear();
  return partitions;
}

PartitionIndex NamespaceTable::FindPartition(const NamespaceRecord& record,
                                             TenantIndex tenant) const {
  auto it = record.partitions.find(tenant);
  return it == record.partitions.end() ? 0 : it->second;
}

PartitionIndex NamespaceTable::PartitionOf(NamespaceRecord* record, TenantIndex tenant) {
  CAIRN_CHECK(tenant != 0 && !record->retired);
  if (const PartitionIndex known = FindPartition(*record, tenant); known != 0) return known;
  if (partitions_.size() > kPartitionsMax) return 0;
  const PartitionIndex partition = static_cast<PartitionIndex>(partitions_.size());
  partitions_.push_back(Partition{record, tenant});
  record->partitions.emplace(tenant, partition);
  return partition;
}

const Partition& NamespaceTable::PartitionAt(PartitionIndex partition) const {
  CAIRN_CHECK(partition > 0 && partition < partitions_.size());
  return partitions_[partition];
}

Partition& NamespaceTable::PartitionAt(PartitionIndex partition) {
  CAIRN_CHECK(partition > 0 && partition < partitions_.size());
  return partitions_[partition];
}

std::vector<FeedNamespace> NamespaceTable::LiveLabels() const {
  std::vector<FeedNamespace> records;
  for (const auto& [label, record] : labels_) {
    if (record->retired) continue;
    records.push_back({.namespace_index = record->index,
                       .tenant = label.first,
                       .name = label.second,
                       .retired = false});
  }
  return records;
}

std::vector<FeedNamespace> NamespaceTable::LabelsOf(const NamespaceRecord& record) const {
  std::vector<FeedNamespace> records;
  for (const auto& [tenant, name] : record.labels) {
    records.push_back({.namespace_index = record.index,
                       .tenant = tenant,
                       .name = name,
                       .retired = record.retired});
  }
  return records;
}

std::vector<std::pair<std::string, const NamespaceRecord*>> NamespaceTable::LabelsOfTenant(
    absl::string_view tenant) const {
  std::vector<std::pair<std::string, const NamespaceRecord*>> labels;
  const std::pair<std::string, std::string> first(tenant, "");
  for (auto it = labels_.lower_bound(first); it != labels_.end(); ++it) {
    if (it->first.first != tenant) break;
    labels.emplace_back(it->first.second, it->second);
  }
  return labels;
}

}  // namespace cairn::node
