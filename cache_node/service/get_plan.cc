#include "cache_node/service/get_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

absl::StatusOr<GetPlan::Range> ToRange(const v1::PartSelector& selector, const PayloadMap& map) {
  const std::optional<size_t> part = map.FindPart(selector.group(), selector.slice());
  if (!part.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("parts: the layout has no group ",
                                                   selector.group(), " slice ", selector.slice()));
  }
  const PayloadMap::Part& found = map.parts()[*part];
  const uint64_t first = selector.first_layer();
  const uint64_t layers =
      selector.layers() == 0 && first < found.layers ? found.layers - first : selector.layers();
  if (layers == 0 || first + layers > found.layers) {
    return absl::InvalidArgumentError(absl::StrCat("parts: layers ", first, " to ", first + layers,
                                                   " of group ", selector.group(), ", which has ",
                                                   found.layers));
  }
  return GetPlan::Range{.part = *part,
                        .first_segment = found.first_segment + first,
                        .segments = static_cast<size_t>(layers)};
}

absl::StatusOr<std::vector<GetPlan::Range>> ToRanges(const v1::GetRequest& request,
                                                     const PayloadMap& map) {
  std::vector<GetPlan::Range> ranges;
  for (const v1::PartSelector& selector : request.parts()) {
    absl::StatusOr<GetPlan::Range> range = ToRange(selector, map);
    if (!range.ok()) return range.status();
    ranges.push_back(*range);
  }
  if (ranges.empty()) {
    for (size_t part = 0; part < map.parts().size(); ++part) {
      const PayloadMap::Part& found = map.parts()[part];
      ranges.push_back(
          {.part = part, .first_segment = found.first_segment, .segments = found.layers});
    }
    return ranges;
  }
  std::vector<GetPlan::Range> sorted = ranges;
  std::sort(sorted.begin(), sorted.end(), [](const GetPlan::Range& a, const GetPlan::Range& b) {
    return a.first_segment < b.first_segment;
  });
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i - 1].first_segment + sorted[i - 1].segments <= sorted[i].first_segment) continue;
    const SegmentId twice = map.SegmentAt(sorted[i].first_segment);
    return absl::InvalidArgumentError(absl::StrCat("parts: group ", twice.group, " slice ",
                                                   twice.slice, " layer ", twice.layer,
                                                   " is asked for twice"));
  }
  return ranges;
}

}  // namespace

uint64_t GetPlan::payload_bytes() const {
  uint64_t bytes = 0;
  for (const Range& range : ranges) {
    bytes += range.segments * map->SegmentBytesAt(range.first_segment);
  }
  return bytes * keys.size();
}

absl::StatusOr<GetPlan> MakeGetPlan(const v1::GetRequest& request, const PayloadMap* map) {
  GetPlan plan;
  plan.map = map;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  plan.fingerprint = *fingerprint;
  const absl::StatusOr<std::optional<LeaseId>> lease =
      OptionalIdFromProto<LeaseId>(request.lease(), "lease");
  if (!lease.ok()) return lease.status();
  plan.lease = *lease;
  absl::StatusOr<std::vector<BlockKey>> keys =
      KeysFromProto(request.keys(), "keys", kKeysPerGetMax);
  if (!keys.ok()) return keys.status();
  plan.keys = *std::move(keys);
  if (plan.keys.empty()) return absl::InvalidArgumentError("keys: none; give at least one");
  if (absl::Status status = CheckNoDuplicates(plan.keys, "keys"); !status.ok()) return status;
  if (request.parts_size() > static_cast<int>(kPartsPerGetMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parts: ", request.parts_size(), ", at most ", kPartsPerGetMax));
  }
  if (map == nullptr) return plan;
  absl::StatusOr<std::vector<GetPlan::Range>> ranges = ToRanges(request, *map);
  if (!ranges.ok()) return ranges.status();
  plan.ranges = *std::move(ranges);
  CAIRN_CHECK(!plan.ranges.empty());
  return plan;
}

}  // namespace cairn::node
