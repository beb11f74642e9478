// NamespaceTable: the labels, namespaces and partitions that a store knows.
//
// A label within a tenant is bound to one fingerprint; a partition is one namespace's blocks of one
// tenant. Records are never destroyed before the table, so pointers to them stay good. A retired
// namespace that is registered again starts with new partitions, so that nothing old can return.
// What records and labels take is estimated and bounded, as nothing takes them back. Not
// thread-safe: under the store's lock; `epoch` may be read on any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/feed_message.h"
#include "cache_node/store/removed_ring.h"
#include "cache_node/tiers/slot_class.h"
#include "common/identity/fingerprint.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

struct NamespaceRecord {
  NamespaceRecord(const Fingerprint& fingerprint_in, const Namespace& fields_in, PayloadMap map_in)
      : fingerprint(fingerprint_in), fields(fields_in), map(std::move(map_in)) {}

  const Fingerprint fingerprint;
  const Namespace fields;
  const PayloadMap map;
  uint32_t index = 0;
  std::atomic<uint64_t> epoch{0};  // Rises with each retirement, in this process or another.
  bool retired = false;
  absl::btree_set<std::pair<std::string, std::string>> labels;  // (tenant, name)
  uint64_t fence_sequence = 0;  // Of its last retirement, where there is a disk tier.
  // Partitions made since it was last registered, by tenant.
  absl::flat_hash_map<TenantIndex, PartitionIndex> partitions;
};

struct Partition {
  NamespaceRecord* name_space = nullptr;
  TenantIndex tenant = 0;
  uint64_t blocks = 0;  // Present.
};

class NamespaceTable {
 public:
  static constexpr size_t kLabelsMax = 65536;
  static constexpr size_t kPartitionsMax = size_t{1} << 20;

  struct Options {
    size_t namespaces_max = 0;
    uint64_t bytes_max = 0;  // Of records and labels, as estimated.
    bool track_unsaved = false;
  };
  using Label = std::pair<std::string, std::string>;  // (tenant, name)
  explicit NamespaceTable(const Options& options);

  struct Registration {
    NamespaceRecord* record = nullptr;
    bool created = false;  // The label was not bound so before.
  };
  // FAILED_PRECONDITION when the label is bound to another namespace that is not retired, with the
  // first field that differs and both values; RESOURCE_EXHAUSTED at a bound, and nothing changed.
  absl::StatusOr<Registration> Register(absl::string_view tenant, absl::string_view name,
                                        const Fingerprint& fingerprint, const Namespace& fields,
                                        const PayloadMap& map);
  // Null when unknown.
  NamespaceRecord* Find(const Fingerprint& fingerprint) const;
  // Null when unknown or retired.
  NamespaceRecord* FindLive(const Fingerprint& fingerprint) const;
  const NamespaceRecord& At(uint32_t index) const;

  // A process before this one had the namespace at this epoch: it does not fall below any more.
  // Nothing for a namespace that has partitions already, but that the next epoch is above it.
  void RaiseEpoch(const Fingerprint& fingerprint, uint64_t epoch);
  // The epoch that the next retirement would give it.
  uint64_t NextEpoch(const NamespaceRecord& record) const;

  // Labels that were bound and not marked saved since; none unless they are tracked.
  std::vector<Label> Unsaved(size_t max) const;
  // The label is durable as it was bound at this epoch, if it is still bound to this namespace.
  // What was retired and registered anew since is to be saved anew: the fence between took the
  // label along. Answers the namespace's record if it is retired now, else null.
  const NamespaceRecord* MarkSaved(const Label& label, const Fingerprint& fingerprint,
                                   uint64_t epoch);

  // Bumps the epoch. Answers the partitions that are to be emptied.
  std::vector<PartitionIndex> Retire(NamespaceRecord* record);

  // 0 when there is none yet.
  PartitionIndex FindPartition(const NamespaceRecord& record, TenantIndex tenant) const;
  // Makes it where needed; 0 when kPartitionsMax are there.
  PartitionIndex PartitionOf(NamespaceRecord* record, TenantIndex tenant);
  const Partition& PartitionAt(PartitionIndex partition) const;
  Partition& PartitionAt(PartitionIndex partition);

  // As records of the feed: the labels of live namespaces, or of one whatever it is.
  std::vector<FeedNamespace> LiveLabels() const;
  std::vector<FeedNamespace> LabelsOf(const NamespaceRecord& record) const;
  // Of a label that is bound.
  const NamespaceRecord& BoundTo(const Label& label) const;
  // (label, record) of one tenant, by label.
  std::vector<std::pair<std::string, const NamespaceRecord*>> LabelsOfTenant(
      absl::string_view tenant) const;

 private:
  absl::Status CheckRoom(bool new_label, bool new_record, uint64_t bytes) const;

  const Options options_;
  uint64_t bytes_ = 0;
  std::vector<std::unique_ptr<NamespaceRecord>> records_;
  absl::flat_hash_map<Fingerprint, NamespaceRecord*> by_fingerprint_;
  absl::btree_map<Label, NamespaceRecord*> labels_;
  absl::btree_set<Label> unsaved_;
  // Epochs of processes before, of namespaces that are not known or were in use already.
  absl::flat_hash_map<Fingerprint, uint64_t> epochs_before_;
  std::vector<Partition> partitions_;  // 0 is none.
};

}  // namespace cairn::node
