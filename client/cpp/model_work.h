// ModelWorker::Work: one request on its way through a ModelWorker. Of that file alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "client/cpp/call_budget.h"
#include "client/cpp/model_worker.h"
#include "common/base/check.h"

namespace cairn {

struct ModelWorker::Work {
  // One region's rest, to be stored by who acts for its tenant. The client outlives the write.
  struct RegionStore {
    std::shared_ptr<CacheNodeClient> node;
    size_t begin = 0;
    size_t end = 0;
    std::unique_ptr<SuffixWrite> write;
  };

  Work(const WorkRequest& asked, PrefillEngine* its_engine, const Clock* clock,
       absl::Duration total_timeout)
      : request(asked), engine(its_engine), budget(clock, total_timeout), prompt(asked.prompt) {
    if (request.own_prompt == nullptr) return;
    CAIRN_CHECK(prompt->regions().size() == 2);
    CAIRN_CHECK(request.own_prompt->block_count() == prompt->block_count());
    CAIRN_CHECK(request.own_prompt->token_count() == prompt->token_count());
    public_blocks = prompt->FirstBlock(1);
  }

  void Note(const absl::Status& status) {
    if (outcome.cache_status.ok()) outcome.cache_status = status;
  }

  size_t BlocksToRead(size_t wanted) const { return request.may_read ? wanted : 0; }

  // Some of the public region is not in place.
  bool LacksPublic() const { return read->usable_blocks() < public_blocks; }

  void UseOwnScope() {
    prompt = request.own_prompt;
    public_blocks = 0;
    outcome.own_scope = true;
    engine->UsePrompt(*prompt);
  }

  // What a read took counts, also where another one follows it.
  void CountRead(const PrefixRead& counted) {
    outcome.latencies.lookup += counted.lookup_time();
    outcome.latencies.get += counted.get_time();
    outcome.mismatched_segments += counted.mismatched_segments();
  }

  std::vector<RoutedReplica> NotExcluded(std::vector<RoutedReplica> candidates) const {
    std::erase_if(candidates, [this](const RoutedReplica& replica) {
      const std::vector<std::string>& excluded = request.excluded_workers;
      return std::find(excluded.begin(), excluded.end(), replica.worker_address) != excluded.end();
    });
    return candidates;
  }

  // The first block that this request stores, or that nobody will; else the prompt's end.
  size_t FirstReserved() const {
    for (const RegionStore& store : stores) {
      if (store.write->first_reserved() < store.end) return store.write->first_reserved();
    }
    return prompt->block_count();
  }

  const WorkRequest& request;
  PrefillEngine* const engine;
  CallBudget budget;
  const Prompt* prompt;      // That counts.
  size_t public_blocks = 0;  // Those at its start that depend on a public region.
  std::vector<RoutedReplica> replicas;
  std::optional<RouteBooking> booking;
  // At the replica that took the request; the client outlives what uses it.
  std::shared_ptr<CacheNodeClient> node;
  std::unique_ptr<PrefixRead> read;
  std::vector<RegionStore> stores;  // Parents first.
  absl::Duration measured_compute;
  WorkOutcome outcome;
};

}  // namespace cairn
