// FakeEngine: an inference engine as far as its cache sees it: one scheduler, whose loop never
// waits, and a process for each rank.
//
// Fake: nothing is computed; what a request lacks is "computed" at once. A request goes through
// lookup with a lease for all ranks, their loads, the least that all could use, a reserve of the
// rest, their stores. A rank that dies is started again; the request that it was part of goes on
// without what it had. For use by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/cpp/async/async_transfers.h"
#include "common/base/clock.h"
#include "tests/cluster/engine/engine_model.h"
#include "tests/cluster/test_client.h"
#include "tests/testing/child_process.h"

namespace cairn::testing {

class FakeEngine {
 public:
  enum class Phase { kLookingUp, kLoading, kReserving, kStoring, kOver };
  struct Request {
    Phase phase = Phase::kLookingUp;
    // That all ranks use, once they have loaded.
    size_t hit_blocks = 0;
    // By rank, what it could use; none of a rank that died.
    std::vector<std::optional<size_t>> usable = std::vector<std::optional<size_t>>(kEngineRanks);
    uint64_t wrong = 0;
    // All its blocks are on the node.
    bool stored = false;
  };

  // `folder` takes the ranks' logs.
  FakeEngine(const std::string& node_address, const std::string& folder);

  // The next request, when the one before is over.
  void Begin(uint32_t prompt_number, size_t blocks);
  const Request& request() const { return request_; }
  // One turn of the scheduler's loop.
  void Turn();
  // Turns until the condition holds; false after `bound`.
  bool TurnUntil(absl::FunctionRef<bool()> condition, absl::Duration bound);

  // The rank stands still after the first layer of its next transfer; IsHolding says when it does.
  void Hold(uint32_t rank);
  bool IsHolding(uint32_t rank) const { return ranks_[rank].holding; }
  void Kill(uint32_t rank) { ranks_[rank].process->Kill9(); }

  uint64_t turns() const { return turns_; }
  absl::Duration longest_turn() const { return longest_turn_; }

 private:
  struct Rank {
    std::unique_ptr<ChildProcess> process;
    bool ready = false;
    bool holding = false;
    bool busy = false;  // With a transfer of the request.
  };

  void StartRank(uint32_t rank);
  void HearRank(uint32_t rank);
  void Heard(uint32_t rank, const std::string& line);
  void LostRank(uint32_t rank);
  void HearTransfers();
  void HeardLookup(absl::StatusOr<LookupAnswer> answer);
  void HeardLease(const absl::StatusOr<LeaseState>& state);
  void HeardReserve(absl::StatusOr<WriteSession> session);
  void WaitForReaders();
  bool AnyBusy() const;
  void GoOnWhenLoaded();
  void ReserveRest();
  void TellRanks(const std::string& line);

  const std::string node_address_;
  const std::string folder_;
  SystemClock clock_;
  TestClient client_;
  const NamespaceHandle name_space_;
  AsyncTransfers transfers_;
  std::vector<Rank> ranks_;
  int processes_ = 0;

  Request request_;
  uint32_t prompt_number_ = 0;
  std::unique_ptr<EnginePrompt> prompt_;
  std::optional<LeaseId> lease_;
  bool lease_over_ = false;
  std::optional<WriteSession> session_;
  uint64_t turns_ = 0;
  absl::Duration longest_turn_ = absl::ZeroDuration();
};

}  // namespace cairn::testing
