// Simulation: one seed from its start to the judgement.
//
// Requests and faults together; then the faults stop and all must come to rest within a bounded
// time, with nothing left over and the router's index right; then requests must hit. The first
// broken invariant ends it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/cluster.h"
#include "tests/sim/invariants/invariant.h"
#include "tests/sim/sim_options.h"

namespace cairn::sim {

struct SimResult {
  bool ok() const { return verdict.ok(); }

  uint64_t seed = 0;
  Verdict verdict;
  // Of all that happened.
  uint64_t digest = 0;
  uint64_t steps = 0;
  absl::Duration virtual_time;
  Workload::Tally tally;
  uint64_t blocks_committed = 0;
  uint64_t node_lives = 0;
  // The last events, when something is broken.
  std::vector<std::string> last_lines;
};

class Simulation {
 public:
  // `mutations` outlive it.
  explicit Simulation(const SimOptions& options, const NodeMutations& mutations = {});
  ~Simulation();

  // Once.
  SimResult Run();

 private:
  class LivesCounter;

  void LookSoon();
  // Lets things happen until `enough` or a time or a violation; false: the time passed.
  template <typename Enough>
  bool RunUntil(absl::Duration bound, const Enough& enough);
  void RunRequestsAndFaults();
  void ComeToRest();
  void RequestsHit();
  void RequestHits(size_t name_space, const std::string& tenant);
  RequestJob::Outcome ServeAndWait(const SimPrompt* prompt);
  void Violated(const std::string& invariant, const std::string& what);

  const SimOptions options_;
  PromptBook book_;
  World world_;
  Workload workload_;
  Cluster cluster_;
  Truth truth_;
  Verdict verdict_;
  Scene scene_;
  std::vector<std::unique_ptr<Invariant>> invariants_;
  std::unique_ptr<LivesCounter> lives_;
  std::unique_ptr<Stranger> stranger_;
  std::unique_ptr<Chaos> chaos_;
};

}  // namespace cairn::sim
