#include "cache_node/store/namespace_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/store/namespace_difference.h"
#include "common/base/check.h"
#include "common/identity/payload_size.h"

namespace cairn::node {

namespace {

// Nodes and slots of the containers that lead to a record, or to a label, and what the allocator
// adds.
constexpr uint64_t kRecordOverheadBytes = 256;
constexpr uint64_t kLabelOverheadBytes = 64;

uint64_t LayoutBytes(const Layout& layout) { return layout.groups.size() * sizeof(Group); }

uint64_t MapBytes(const PayloadMap& map) {
  const size_t groups = map.layout().groups.size();
  return LayoutBytes(map.layout()) + groups * (sizeof(size_t) + sizeof(SegmentTiles)) +
         map.parts().size() * sizeof(PayloadMap::Part);
}

uint64_t RecordBytes(const Namespace& fields, const PayloadMap& map) {
  return sizeof(NamespaceRecord) + kRecordOverheadBytes + fields.model.size() +
         fields.revision.size() + fields.numerics.size() + LayoutBytes(fields.layout) +
         MapBytes(map);
}

// It is kept in the table and with its record.
uint64_t LabelBytes(absl::string_view tenant, absl::string_view name) {
  return 2 * (sizeof(std::pair<std::string, std::string>) + kLabelOverheadBytes + tenant.size() +
              name.size());
}

}  // namespace

NamespaceTable::NamespaceTable(const Options& options) : options_(options), partitions_(1) {}

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
  NamespaceRecord* record = Find(fingerprint);
  const bool new_label = bound == labels_.end();
  const uint64_t bytes = (new_label ? LabelBytes(tenant, name) : 0) +
                         (record == nullptr ? RecordBytes(fields, map) : 0);
  if (absl::Status status = CheckRoom(new_label, record == nullptr, bytes); !status.ok()) {
    return status;
  }
  bytes_ += bytes;
  if (record == nullptr) {
    records_.push_back(std::make_unique<NamespaceRecord>(fingerprint, fields, map));
    record = records_.back().get();
    record->index = static_cast<uint32_t>(records_.size() - 1);
    if (auto it = epochs_before_.find(fingerprint); it != epochs_before_.end()) {
      record->epoch.store(it->second, std::memory_order_release);
    }
    CAIRN_CHECK(by_fingerprint_.emplace(fingerprint, record).second);
  }
  const bool created = new_label || bound->second != record || record->retired;
  if (record->retired) {
    CAIRN_CHECK(record->partitions.empty());
    record->retired = false;
  }
  if (!new_label) bound->second->labels.erase(label);
  labels_[label] = record;
  record->labels.insert(label);
  if (created && options_.track_unsaved) unsaved_.insert(label);
  return Registration{record, created};
}

absl::Status NamespaceTable::CheckRoom(bool new_label, bool new_record, uint64_t bytes) const {
  if (new_label && labels_.size() >= kLabelsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "this node keeps at most ", kLabelsMax, " names of namespaces: use one that is there"));
  }
  if (new_record && records_.size() >= options_.namespaces_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this node keeps at most ", options_.namespaces_max,
                     " namespaces, retired ones among them, until it is started anew"));
  }
  CAIRN_CHECK(bytes_ <= options_.bytes_max);
  if (bytes > options_.bytes_max - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the namespace and its name take ", bytes, " bytes, and ", bytes_, " of ",
        options_.bytes_max,
        " are taken by others, retired ones among them (--namespace-memory): use one that is "
        "there, or start the node with more"));
  }
  return absl::OkStatus();
}

void NamespaceTable::RaiseEpoch(const Fingerprint& fingerprint, uint64_t epoch) {
  NamespaceRecord* record = Find(fingerprint);
  if (record != nullptr && record->partitions.empty() &&
      record->epoch.load(std::memory_order_relaxed) < epoch) {
    record->epoch.store(epoch, std::memory_order_release);
    return;
  }
  uint64_t& before = epochs_before_[fingerprint];
  before = std::max(before, epoch);
}

uint64_t NamespaceTable::NextEpoch(const NamespaceRecord& record) const {
  auto it = epochs_before_.find(record.fingerprint);
  const uint64_t before = it == epochs_before_.end() ? 0 : it->second;
  return std::max(before, record.epoch.load(std::memory_order_relaxed)) + 1;
}

std::vector<NamespaceTable::Label> NamespaceTable::Unsaved(size_t max) const {
  std::vector<Label> labels;
  for (const Label& label : unsaved_) {
    if (labels.size() >= max) break;
    labels.push_back(label);
  }
  return labels;
}

const NamespaceRecord* NamespaceTable::MarkSaved(const Label& label, const Fingerprint& fingerprint,
                                                 uint64_t epoch) {
  auto it = labels_.find(label);
  if (it == labels_.end() || it->second->fingerprint != fingerprint) return nullptr;
  const bool same = it->second->epoch.load(std::memory_order_relaxed) == epoch;
  if (same || it->second->retired) unsaved_.erase(label);
  return it->second->retired ? it->second : nullptr;
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
  record->epoch.store(NextEpoch(*record), std::memory_order_release);
  for (const Label& label : record->labels) unsaved_.erase(label);
  std::vector<PartitionIndex> partitions;
  for (const auto& [tenant, partition] : record->partitions) partitions.push_back(partition);
  std::sort(partitions.begin(), partitions.end());  // Not the hash map's order: runs repeat.
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

const NamespaceRecord& NamespaceTable::BoundTo(const Label& label) const {
  auto it = labels_.find(label);
  CAIRN_CHECK(it != labels_.end());
  return *it->second;
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
