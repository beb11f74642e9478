// Workload: the requests of one simulation, in order, and what became of them.
//
// Conversations of two tenants that grow turn by turn, some behind a prompt that everyone shares
// and that the tenant `public` stores. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/dice.h"
#include "tests/sim/worker/prompt_book.h"
#include "tests/sim/worker/request_job.h"

namespace cairn::sim {

struct WorkloadOptions {
  uint64_t requests = 150;
  size_t conversations = 10;
  size_t blocks_max = 12;
};

class Workload {
 public:
  struct Tally {
    uint64_t ended = 0;
    uint64_t blocks = 0;
    uint64_t hit_blocks = 0;
    uint64_t fallbacks = 0;
    uint64_t uncached = 0;  // No node took it.
  };

  // Borrows the book.
  Workload(const WorkloadOptions& options, uint64_t seed, PromptBook* book);

  // The next request; null after the last.
  const SimPrompt* Next();
  bool AllHandedOut() const { return handed_out_ == options_.requests; }
  void Ended(const RequestJob::Outcome& outcome);
  // A prompt of `blocks` blocks that nobody asked for before.
  const SimPrompt* Fresh(size_t name_space, const std::string& tenant, size_t blocks);

  const Tally& tally() const { return tally_; }

 private:
  struct Conversation {
    size_t name_space = 0;
    // What everyone shares comes first; 0: nothing.
    uint32_t shared = 0;
    SimRegion own;
  };

  Conversation Begin();
  void Grow(Conversation* conversation);
  SimRegion SharedRegion(uint32_t number) const;

  const WorkloadOptions options_;
  Dice dice_;
  PromptBook* const book_;
  std::vector<Conversation> conversations_;
  uint64_t handed_out_ = 0;
  uint32_t next_token_ = 1'000'000;
  Tally tally_;
};

}  // namespace cairn::sim
