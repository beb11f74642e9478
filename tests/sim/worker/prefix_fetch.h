// PrefixFetch: the longest prefix of a prompt that one node holds, leased, fetched by all ranks and
// verified: PrefixRead of the product as a state machine.
//
// A `done` is called once for each Run or EndLeases, from an event, unless this is destroyed
// before; it may destroy this.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/sim/worker/get_call.h"
#include "tests/sim/worker/request_context.h"

namespace cairn::sim {

class PrefixFetch {
 public:
  using Done = std::function<void(const absl::Status&)>;

  PrefixFetch(RequestContext* context, HostId node) : context_(context), node_(node) {}

  // Reads on from the last usable block, up to block `end`.
  void Run(size_t end, Done done);
  void EndLeases(Done done);

  size_t usable_blocks() const { return usable_blocks_; }
  bool namespace_known() const { return namespace_known_; }

 private:
  struct Held {
    LeaseId lease;
    std::vector<uint32_t> usable_of_rank;
  };

  void TakeLookup(size_t count, const absl::StatusOr<std::string>& answer);
  void FetchRank(uint32_t rank, size_t count);
  void TakeRank(uint32_t rank, size_t count, const GetResult& result);
  void NoteUses(const std::vector<PartLayers>& parts, size_t first, size_t count);
  void ReportMismatch(const MismatchedSegment& mismatch, Done then);
  void End(const absl::Status& status);

  RequestContext* const context_;
  const HostId node_;
  std::unique_ptr<UnaryCall> call_;
  std::unique_ptr<GetCall> get_;
  std::vector<std::unique_ptr<UnaryCall>> ends_;
  size_t ends_left_ = 0;
  std::vector<Held> held_;
  size_t usable_blocks_ = 0;
  bool namespace_known_ = true;
  absl::Status fetch_status_;
  Alive alive_;
  Done done_;
};

}  // namespace cairn::sim
