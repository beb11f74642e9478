// ReuseRequests: what the policy knows of the requests of late: what each found and missed, and so
// how its blocks are classed. A request is a lookup and the reserve that follows it; the reserve
// comes under a stamp of its own, seconds later perhaps, and is tied to its lookup by the key of
// the first block that it brings. The last kKept are known, older ones forgotten.
//
// Not thread-safe. Belongs to one policy. O(1) a call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_node/store/policies/reuse/reuse_groups.h"

namespace cairn::node {

// Neighbours among the blocks that a request missed, alike in how often they were asked for.
struct MissedRun {
  uint32_t from = 0;  // Depths, from inclusive, to exclusive.
  uint32_t to = 0;
  uint8_t touches = 1;
  bool last = false;
  uint64_t key = 0;  // Of its first block.
  std::optional<uint64_t> declined_key;
  GroupId group = kNoGroup;
  uint64_t group_serial = 0;
};

struct ReuseRequest {
  uint64_t serial = 0;  // 0: none.
  UseStamp lookup = 0;
  UseStamp reserve = 0;
  uint64_t came_at = 0;  // In the model's time.
  bool settled = false;  // All that it missed is known, `features` hold.
  uint32_t prompt_blocks = 0;
  ReuseFeatures features;  // touches and last apart, which belong to the block.

  // The request before it on this prompt, as far as it is known.
  uint32_t known_blocks = 0;  // That were there, or remembered, without a gap from the start.
  uint32_t before_blocks = 0;
  uint8_t before_turn = 0;
  uint64_t before_at = 0;

  // While misses are told: the run of remembered blocks that they are in.
  uint8_t remembered_touches = 0;
  uint32_t remembered_left = 0;
  bool nothing_remembered = false;  // From here on.

  std::vector<MissedRun> runs;
  struct Made {
    GroupId group = kNoGroup;
    uint64_t serial = 0;
  };
  std::vector<Made> groups;  // That hold what it touched, or brings.
  size_t next_group = 0;     // Where the next one goes, once there are kGroupsMax.

  // So many of each, whatever a caller asks for: it has them searched and kept for long. Real
  // prompts have few: what was asked for more often comes first.
  static constexpr size_t kRunsMax = 32;
  static constexpr size_t kGroupsMax = 64;

  MissedRun* RunAt(uint32_t depth);
  // The oldest made of kGroupsMax is forgotten: its blocks that are still to come get one anew.
  void AddGroup(const Made& made);
};

class ReuseRequests {
 public:
  static constexpr size_t kKept = 1024;

  // The request with that stamp, of its lookup or its reserve. Null: not known.
  ReuseRequest* Find(UseStamp stamp);
  ReuseRequest* BySerial(uint64_t serial);
  // A new one; the oldest may be forgotten for it. Pointers hold until the next Begin.
  ReuseRequest* Begin(UseStamp lookup);
  void TieReserve(ReuseRequest* request, UseStamp reserve);

  uint64_t MemoryBytes() const;

 private:
  std::vector<ReuseRequest> ring_;                    // By serial, grown to kKept.
  absl::flat_hash_map<UseStamp, uint64_t> by_stamp_;  // To serials of the ring.
  uint64_t last_serial_ = 0;
  UseStamp last_stamp_ = 0;  // Of last_found_: calls of one request come in a row.
  uint64_t last_found_ = 0;
};

}  // namespace cairn::node
