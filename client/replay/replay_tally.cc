#include "client/replay/replay_tally.h"

#include <algorithm>
#include <vector>

namespace cairn::replay {
namespace {

// Steps that were not taken have no latency.
void RecordTaken(absl::Duration latency, LatencyRecorder* recorder) {
  if (latency > absl::ZeroDuration()) recorder->Record(latency);
}

}  // namespace

void ReplayTally::Count(const WorkOutcome& outcome, uint64_t wrong_bytes) {
  ++requests_;
  if (!outcome.status.ok()) {
    ++failed_requests_;
    failure_.Update(outcome.status);
  }
  cache_failure_.Update(outcome.cache_status);
  wrong_bytes_ += wrong_bytes;
  mismatched_segments_ += outcome.mismatched_segments;
  tokens_looked_up_ += outcome.prompt_tokens;
  hit_tokens_ += outcome.hit_tokens;
  fallbacks_ += outcome.fallbacks;
  if (!outcome.cached) ++uncached_requests_;
  blocks_stored_ += outcome.blocks_stored;
  hits_.device += outcome.hits.device;
  hits_.host += outcome.hits.host;
  hits_.disk += outcome.hits.disk;
  if (!outcome.replica.worker_address.empty()) {
    computed_tokens_[outcome.replica.worker_address] += outcome.computed_tokens;
  }
  RecordTaken(outcome.latencies.route, &route_);
  RecordTaken(outcome.latencies.lookup, &lookup_);
  RecordTaken(outcome.latencies.get, &get_);
  RecordTaken(outcome.latencies.put, &put_);
}

void ReplayTally::CountShared(const WorkOutcome& outcome, uint64_t public_blocks) {
  ++shared_requests_;
  if (outcome.own_scope) {
    ++own_scope_requests_;
  } else {
    public_hits_ += std::min(outcome.hits.total(), public_blocks);
  }
}

void ReplayTally::CountFailed(const absl::Status& status, uint64_t prompt_tokens) {
  ++requests_;
  ++failed_requests_;
  tokens_looked_up_ += prompt_tokens;
  failure_.Update(status);
}

void ReplayTally::Merge(const ReplayTally& other) {
  requests_ += other.requests_;
  failed_requests_ += other.failed_requests_;
  wrong_bytes_ += other.wrong_bytes_;
  mismatched_segments_ += other.mismatched_segments_;
  tokens_looked_up_ += other.tokens_looked_up_;
  hit_tokens_ += other.hit_tokens_;
  fallbacks_ += other.fallbacks_;
  uncached_requests_ += other.uncached_requests_;
  shared_requests_ += other.shared_requests_;
  own_scope_requests_ += other.own_scope_requests_;
  public_hits_ += other.public_hits_;
  blocks_stored_ += other.blocks_stored_;
  hits_.device += other.hits_.device;
  hits_.host += other.hits_.host;
  hits_.disk += other.hits_.disk;
  for (const auto& [worker, tokens] : other.computed_tokens_) computed_tokens_[worker] += tokens;
  route_.Merge(other.route_);
  lookup_.Merge(other.lookup_);
  get_.Merge(other.get_);
  put_.Merge(other.put_);
  failure_.Update(other.failure_);
  cache_failure_.Update(other.cache_failure_);
}

void ReplayTally::Fill(ReplayReport* report) const {
  report->requests = requests_;
  report->failed_requests = failed_requests_;
  report->wrong_bytes = wrong_bytes_;
  report->mismatched_segments = mismatched_segments_;
  report->tokens_looked_up = tokens_looked_up_;
  report->hit_blocks = hits_.total();
  report->hit_tokens = hit_tokens_;
  report->hit_blocks_device = hits_.device;
  report->hit_blocks_host = hits_.host;
  report->hit_blocks_disk = hits_.disk;
  report->fallbacks = fallbacks_;
  report->uncached_requests = uncached_requests_;
  report->shared_requests = shared_requests_;
  report->own_scope_requests = own_scope_requests_;
  report->hit_blocks_public = public_hits_;
  report->stored_blocks = blocks_stored_;
  std::vector<uint64_t> computed;
  for (const auto& [worker, tokens] : computed_tokens_) computed.push_back(tokens);
  report->busiest_over_mean = BusiestOverMean(computed);
  report->route = LatencySummary::Of(route_);
  report->lookup = LatencySummary::Of(lookup_);
  report->get = LatencySummary::Of(get_);
  report->put = LatencySummary::Of(put_);
}

}  // namespace cairn::replay
