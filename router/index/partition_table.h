// PartitionTable: pairs of (namespace, tenant) as small numbers.
//
// A pair keeps its number while something refers to it (Retain, Release); at the bound, numbers of
// pairs that nothing refers to are given out again. Not thread-safe: under the core's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/identity/fingerprint.h"

namespace cairn::router {

using PartitionIndex = uint32_t;

class PartitionTable {
 public:
  explicit PartitionTable(size_t partitions_max);

  // The pair's number, given out now if need be; it stays valid until the next Intern, and for as
  // long as it is retained. Nothing when all numbers are in use.
  std::optional<PartitionIndex> Intern(const Fingerprint& fingerprint, absl::string_view tenant);
  std::optional<PartitionIndex> Find(const Fingerprint& fingerprint,
                                     absl::string_view tenant) const;

  void Retain(PartitionIndex partition);
  void Release(PartitionIndex partition);

  size_t size() const { return by_name_.size(); }

 private:
  struct Partition {
    std::string name;
    uint64_t references = 0;
  };

  void ReclaimUnused();

  const size_t partitions_max_;
  std::vector<Partition> partitions_;
  std::vector<PartitionIndex> free_;
  absl::flat_hash_map<std::string, PartitionIndex> by_name_;  // The fingerprint, then the tenant.
};

}  // namespace cairn::router
