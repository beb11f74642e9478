// NumberedRecord: a record that is wholly told by a number, so that whoever knows the number can
// say whether what was read is right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "cache_node/tiers/disk/disk_types.h"

namespace cairn::testing {

class NumberedRecord {
 public:
  NumberedRecord(uint64_t number, size_t payload_bytes);

  // record() borrows what is kept here.
  NumberedRecord(const NumberedRecord&) = delete;
  NumberedRecord& operator=(const NumberedRecord&) = delete;

  const node::DiskRecord& record() const { return record_; }
  node::DiskRecord& record() { return record_; }
  const BlockKey& key() const { return record_.block.key; }

  // Empty when fields and payload are this record's, else what differs.
  std::string Differs(const node::DiskRecordFields& fields,
                      absl::Span<const uint8_t> payload) const;

  static BlockKey KeyOf(uint64_t number);
  static void FillPayload(uint64_t number, absl::Span<uint8_t> payload);

 private:
  node::DiskScope scope_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> extra_;
  std::vector<uint64_t> digests_;
  std::vector<uint8_t> payload_;
  node::DiskRecord record_;
};

}  // namespace cairn::testing
