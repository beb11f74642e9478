// What the measures of the spill suite share: blocks by number, and the measures themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cache_node/tiers/disk/disk_types.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"
#include "tests/bench/json_report.h"

namespace cairn::bench {

// Each uses a folder of its own within `dir`.
//
// Recovery must come first, in a process of one thread: its child is a copy of it.
absl::Status MeasureRecovery(const std::string& dir, JsonReport* report);
absl::Status MeasureAmplification(const std::string& dir, JsonReport* report);
absl::Status MeasureTransfer(const std::string& dir, JsonReport* report);

// Blocks of 16 tokens, keys and values as bfloat16.
Namespace SpillNamespace(uint32_t layers, uint32_t heads, uint32_t dim);
BlockKey SpillKey(uint64_t number);
// Of the public tenant.
node::DiskScope PublicScope(const Namespace& name_space);
// One a segment, in the order of the payload.
std::vector<uint64_t> DigestsOf(const PayloadMap& map, const BlockKey& key,
                                absl::Span<const uint8_t> payload);

double SecondsSince(absl::Time began);
// A number of /proc/self/NAME, in the unit that it has there.
uint64_t OfProcess(absl::string_view name, absl::string_view field);

}  // namespace cairn::bench
