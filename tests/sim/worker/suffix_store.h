// SuffixStore: stores the rest of a prompt at one node, reserved before it is computed: SuffixWrite
// of the product as a state machine, by all ranks at once.
//
// A `done` is called once for each Reserve or Write, from an event, unless this is destroyed
// before; it may destroy this.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cairn/v1/write.pb.h"
#include "tests/sim/worker/rank_write.h"
#include "tests/sim/worker/request_context.h"

namespace cairn::sim {

class SuffixStore {
 public:
  using Done = std::function<void(const absl::Status&)>;

  SuffixStore(RequestContext* context, HostId node) : context_(context), node_(node) {}

  // Reserves what it can of blocks [begin, end). Once.
  void Reserve(size_t begin, size_t end, bool register_first, Done done);
  // The first block that is ours to write, or that nobody will; else `end`.
  size_t first_reserved() const { return first_reserved_; }
  // Writes and commits what was reserved; ABORTED when a reservation expired meanwhile.
  void Write(Done done);
  // Gives up what was reserved; nobody waits for the answer.
  void Abort();

  bool reserved_anything() const { return !reserved_.empty(); }

 private:
  struct Reserved {
    TokenId token;
    std::vector<RankWrite::Block> blocks;
  };

  void Register(std::function<void()> then);
  void Ask();
  void TakeAnswer(size_t begin, size_t count, const absl::StatusOr<std::string>& answer);
  void WriteNext();
  std::vector<PartLayers> PartsToWrite(uint32_t rank) const;
  void End(const absl::Status& status);

  RequestContext* const context_;
  const HostId node_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool registered_ = false;
  size_t first_reserved_ = 0;
  std::vector<Reserved> reserved_;
  size_t next_to_write_ = 0;
  size_t ranks_left_ = 0;
  absl::Status write_status_;
  std::unique_ptr<UnaryCall> call_;
  std::vector<std::unique_ptr<UnaryCall>> aborts_;
  std::vector<std::unique_ptr<RankWrite>> writes_;
  Alive alive_;
  Done done_;
};

}  // namespace cairn::sim
