#include "client/cpp/model_worker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client/cpp/rendezvous.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

// Nobody is there, as opposed to somebody who refuses.
bool IsGone(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

struct ModelWorker::Work {
  Work(const WorkRequest& asked, PrefillEngine* its_engine, const Clock* clock,
       absl::Duration total_timeout)
      : request(asked), engine(its_engine), budget(clock, total_timeout) {}

  void Note(const absl::Status& status) {
    if (outcome.cache_status.ok()) outcome.cache_status = status;
  }

  size_t BlocksToRead(size_t wanted) const { return request.may_read ? wanted : 0; }

  const WorkRequest& request;
  PrefillEngine* const engine;
  CallBudget budget;
  std::vector<RoutedReplica> replicas;
  std::optional<RouteBooking> booking;
  // At the replica that took the request; the client outlives what uses it.
  std::shared_ptr<CacheNodeClient> node;
  std::unique_ptr<PrefixRead> read;
  std::unique_ptr<SuffixWrite> write;
  absl::Duration measured_compute;
  WorkOutcome outcome;
};

ModelWorker::ModelWorker(const ModelWorkerOptions& options, const NamespaceHandle& name_space,
                         RouterClient* router, NodeClients* nodes)
    : options_(options),
      name_space_(name_space),
      router_(router),
      nodes_(nodes),
      router_absence_(nodes->clock(), kRouterGoneFor) {}

WorkOutcome ModelWorker::Run(const WorkRequest& request, PrefillEngine* engine) const {
  Work work(request, engine, nodes_->clock(), options_.total_timeout);
  work.outcome.prompt_tokens = request.prompt->token_count();
  Route(&work);
  Read(&work);
  if (work.read != nullptr) Reserve(&work);
  Compute(&work);
  if (work.outcome.status.ok()) {
    if (options_.report_first_token) Report(v1::OUTCOME_PHASE_FIRST_TOKEN, &work);
    if (work.write != nullptr) Store(&work);
  }
  if (work.read != nullptr) work.read->EndLeases(&work.budget);
  Report(v1::OUTCOME_PHASE_END, &work);
  return std::move(work.outcome);
}

void ModelWorker::Route(Work* work) const {
  if (router_ == nullptr) {
    work->replicas = options_.fixed_replicas;
    return;
  }
  absl::StatusOr<RouteAnswer> answer = AskRouter(work);
  work->Note(answer.status());
  if (!answer.ok()) {
    work->replicas = OrderByRendezvous(work->request.prompt->keys(), options_.known_replicas);
    return;
  }
  work->outcome.routed = true;
  work->replicas = std::move(answer->replicas);
  work->booking = answer->booking;
}

absl::StatusOr<RouteAnswer> ModelWorker::AskRouter(Work* work) const {
  if (!router_absence_.MayAsk()) {
    return absl::UnavailableError("the router was gone a moment ago; not asked again yet");
  }
  const Prompt& prompt = *work->request.prompt;
  absl::StatusOr<RouteAnswer> answer = absl::UnknownError("not asked");
  const absl::Status status = work->budget.Spend(
      options_.route_timeout, &work->outcome.latencies.route, [&](absl::Duration timeout) {
        const RouteOptions options{.prompt_tokens = work->outcome.prompt_tokens,
                                   .output_tokens = work->request.output_tokens,
                                   .timeout = timeout};
        if (prompt.block_count() <= kKeysPerLookupMax) {
          answer = router_->Route(name_space_, prompt, options);
        } else {
          // The router's bound; what so long a prefix says of a replica, all of it would too.
          const auto begin = prompt.keys().begin();
          answer = router_->Route(name_space_, Prompt::FromKeys({begin, begin + kKeysPerLookupMax}),
                                  options);
        }
        return answer.status();
      });
  NoteRouter(status);
  if (!status.ok()) return status;
  return answer;
}

void ModelWorker::NoteRouter(const absl::Status& status) const {
  if (IsGone(status)) {
    router_absence_.NoteGone();
  } else {
    router_absence_.NoteAnswered();
  }
}

void ModelWorker::Read(Work* work) const {
  for (const RoutedReplica& replica : work->replicas) {
    if (ReadAt(replica, work)) {
      work->outcome.replica = replica;
      return;
    }
    ++work->outcome.fallbacks;
  }
  // A worker without its cache still works.
  if (!work->replicas.empty()) work->outcome.replica = work->replicas.front();
}

bool ModelWorker::ReadAt(const RoutedReplica& replica, Work* work) const {
  if (replica.node_addresses.empty() || replica.reason == v1::ROUTE_REASON_HOLDER_OUT) return false;
  absl::StatusOr<std::shared_ptr<CacheNodeClient>> node =
      nodes_->Get(replica.node_addresses.front());
  work->Note(node.status());
  if (!node.ok()) return false;
  auto read =
      std::make_unique<PrefixRead>(node->get(), &name_space_, work->request.prompt, options_.read);
  const absl::Status status = read->Run(work->BlocksToRead(work->request.prompt->block_count()),
                                        work->engine, &work->budget);
  work->Note(status);
  // With something in hand the request stays here: it would be lost elsewhere.
  const bool gone = IsGone(status) && read->usable_blocks() == 0;
  if (gone) {
    work->outcome.latencies.lookup += read->lookup_time();
    work->outcome.latencies.get += read->get_time();
    work->outcome.mismatched_segments += read->mismatched_segments();
    return false;
  }
  work->outcome.cached = true;
  work->read = std::move(read);
  work->node = *std::move(node);
  return true;
}

void ModelWorker::Reserve(Work* work) const {
  PrefixRead& read = *work->read;
  const size_t end = work->request.prompt->block_count();
  const bool store = work->request.may_store && end >= options_.stored_blocks_min;
  if (read.usable_blocks() < end && store) {
    work->write = std::make_unique<SuffixWrite>(work->node.get(), &name_space_,
                                                work->request.prompt, WriteOptionsOf(*work));
    absl::Status status;
    if (work->request.may_read && !read.namespace_known()) {
      status = work->write->Register(&work->budget);
    }
    if (status.ok()) status = work->write->Reserve(read.usable_blocks(), end, &work->budget);
    work->Note(status);
    // Not past there: our own blocks are in progress too.
    const size_t others_end = work->BlocksToRead(work->write->first_reserved());
    if (status.ok()) work->Note(read.Run(others_end, work->engine, &work->budget));
  }
  WorkOutcome& outcome = work->outcome;
  outcome.hits = read.hits();
  outcome.latencies.lookup += read.lookup_time();
  outcome.latencies.get += read.get_time();
  outcome.mismatched_segments += read.mismatched_segments();
}

SuffixWriteOptions ModelWorker::WriteOptionsOf(const Work& work) const {
  SuffixWriteOptions options = options_.write;
  if (work.request.keep.has_value()) options.keep = *work.request.keep;
  return options;
}

void ModelWorker::Compute(Work* work) const {
  WorkOutcome& outcome = work->outcome;
  const size_t usable = work->read == nullptr ? 0 : work->read->usable_blocks();
  outcome.hit_tokens = usable * uint64_t{name_space_.block_tokens()};
  CAIRN_CHECK(outcome.hit_tokens <= outcome.prompt_tokens);
  outcome.computed_tokens = outcome.prompt_tokens - outcome.hit_tokens;
  const absl::Time begin = nodes_->clock()->SteadyNow();
  const absl::StatusOr<absl::Duration> took =
      work->engine->Compute(outcome.replica.worker_address, usable);
  outcome.latencies.compute = nodes_->clock()->SteadyNow() - begin;
  outcome.status = took.status();
  if (took.ok()) work->measured_compute = *took;
}

void ModelWorker::Store(Work* work) const {
  WorkOutcome& outcome = work->outcome;
  const size_t usable = work->read->usable_blocks();
  SuffixWrite& write = *work->write;
  const absl::Status status = write.Write(work->engine, &work->budget);
  work->Note(status);
  outcome.blocks_stored = write.blocks_written();
  outcome.blocks_of_others = write.blocks_of_others();
  outcome.storing_stopped_by = write.stopped_by();
  outcome.latencies.put = write.time();
  // What others had in hand and did not bring, and what expired here while it was computed.
  const size_t end =
      absl::IsAborted(status) ? work->request.prompt->block_count() : write.first_reserved();
  if (IsGone(status) || usable >= end) return;
  SuffixWrite again(work->node.get(), &name_space_, work->request.prompt, WriteOptionsOf(*work));
  absl::Status stored = again.Reserve(usable, end, &work->budget);
  if (stored.ok()) stored = again.Write(work->engine, &work->budget);
  work->Note(stored);
  outcome.blocks_stored += again.blocks_written();
  outcome.latencies.put += again.time();
}

void ModelWorker::Report(v1::OutcomePhase phase, Work* work) const {
  if (!work->booking) return;
  const WorkOutcome& outcome = work->outcome;
  const std::string& first = work->replicas.front().worker_address;
  absl::Duration spent;
  const absl::Status status =
      work->budget.Spend(options_.report_timeout, &spent, [&](absl::Duration timeout) {
        return router_
            ->ReportOutcome({.booking = *work->booking,
                             .phase = phase,
                             .worker_address = outcome.replica.worker_address == first
                                                   ? ""
                                                   : outcome.replica.worker_address,
                             .cached_tokens = outcome.hit_tokens,
                             .computed_tokens = outcome.computed_tokens,
                             .compute = work->measured_compute,
                             .timeout = timeout})
            .status();
      });
  NoteRouter(status);
  work->Note(status);
}

}  // namespace cairn
