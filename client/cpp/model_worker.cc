#include "client/cpp/model_worker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client/cpp/model_work.h"
#include "client/cpp/rendezvous.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

// Writers of one prefix that go one after the other while a request waits for it.
constexpr int kTakeOversMax = 8;

// Nobody is there, as opposed to somebody who refuses.
bool IsGone(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

ModelWorker::ModelWorker(const ModelWorkerOptions& options, const NamespaceHandle& name_space,
                         RouterClient* router, NodeClients* nodes, NodeClients* public_nodes)
    : options_(options),
      name_space_(name_space),
      router_(router),
      nodes_(nodes),
      public_nodes_(public_nodes),
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
    if (work.read != nullptr) Store(&work);
  }
  if (work.read != nullptr) work.read->EndLeases(&work.budget);
  Report(v1::OUTCOME_PHASE_END, &work);
  return std::move(work.outcome);
}

void ModelWorker::Route(Work* work) const {
  if (work->public_blocks > 0 && public_nodes_ == nullptr) ChooseScope(work);
  if (router_ == nullptr) {
    work->replicas = work->NotExcluded(options_.fixed_replicas);
    return;
  }
  absl::StatusOr<RouteAnswer> answer = AskRouter(work);
  work->Note(answer.status());
  if (!answer.ok()) {
    work->replicas =
        work->NotExcluded(OrderByRendezvous(work->prompt->keys(), options_.known_replicas));
    return;
  }
  work->outcome.routed = true;
  work->replicas = std::move(answer->replicas);
  work->booking = answer->booking;
}

void ModelWorker::ChooseScope(Work* work) const {
  if (!work->request.may_read) return work->UseOwnScope();
  // Longer ones than a call takes are left to the node that is read.
  if (router_ == nullptr || work->public_blocks > kKeysPerLookupMax) return;
  if (!router_absence_.MayAsk()) return;
  const auto begin = work->prompt->keys().begin();
  const Prompt asked =
      Prompt::FromKeys({begin, begin + static_cast<ptrdiff_t>(work->public_blocks)});
  absl::StatusOr<PrefixAnswer> answer = absl::UnknownError("not asked");
  const absl::Status status = work->budget.Spend(
      options_.route_timeout, &work->outcome.latencies.route, [&](absl::Duration timeout) {
        answer = router_->LookupPrefix(name_space_, asked, timeout);
        return answer.status();
      });
  NoteRouter(status);
  work->Note(status);
  if (!status.ok()) return;
  const bool somewhere = std::any_of(
      answer->holders.begin(), answer->holders.end(),
      [work](const HolderPrefix& holder) { return holder.blocks == work->public_blocks; });
  if (!somewhere) work->UseOwnScope();
}

absl::StatusOr<RouteAnswer> ModelWorker::AskRouter(Work* work) const {
  if (!router_absence_.MayAsk()) {
    return absl::UnavailableError("the router was gone a moment ago; not asked again yet");
  }
  const Prompt& prompt = *work->prompt;
  const uint32_t one_in = options_.routed_by_tokens_one_in;
  const bool by_tokens = one_in > 0 && (routed_.fetch_add(1) + 1) % one_in == 0;
  absl::StatusOr<RouteAnswer> answer = absl::UnknownError("not asked");
  const absl::Status status = work->budget.Spend(
      options_.route_timeout, &work->outcome.latencies.route, [&](absl::Duration timeout) {
        const RouteOptions options{.prompt_tokens = work->outcome.prompt_tokens,
                                   .output_tokens = work->request.output_tokens,
                                   .by_tokens = by_tokens,
                                   .session_id = work->request.session_id,
                                   .excluded_workers = work->request.excluded_workers,
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
  if (IsGone(status) && !LeavesNobody(status)) {
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
  absl::Status status = ReadFrom(node->get(), work);
  // Blocks of a public prefix without its end are of no use: nothing of ours can follow them.
  const bool switches = work->LacksPublic() && public_nodes_ == nullptr && !IsGone(status);
  if (switches) status = ReadOwnScope(node->get(), work);
  // With something in hand the request stays here: it would be lost elsewhere.
  if (IsGone(status) && work->read->usable_blocks() == 0) {
    work->CountRead(*work->read);
    work->read = nullptr;
    return false;
  }
  work->outcome.cached = true;
  work->node = *std::move(node);
  return true;
}

absl::Status ModelWorker::ReadFrom(CacheNodeClient* node, Work* work) const {
  work->read = std::make_unique<PrefixRead>(node, &name_space_, work->prompt, options_.read);
  absl::Status status =
      work->read->Run(work->BlocksToRead(work->prompt->block_count()), work->engine, &work->budget);
  work->Note(status);
  return status;
}

absl::Status ModelWorker::ReadOwnScope(CacheNodeClient* node, Work* work) const {
  work->read->EndLeases(&work->budget);
  work->CountRead(*work->read);
  work->UseOwnScope();
  return ReadFrom(node, work);
}

void ModelWorker::Reserve(Work* work) const {
  const size_t end = work->prompt->block_count();
  const bool store = work->request.may_store && end >= options_.stored_blocks_min;
  if (work->read->usable_blocks() < end && store) {
    absl::Status status = ReserveRest(work);
    // The operator may have taken the prefix off the list, or us.
    if (absl::IsPermissionDenied(status) && work->LacksPublic()) {
      work->Note(status);
      work->stores.clear();
      status = ReadOwnScope(work->node.get(), work);
      if (status.ok()) status = ReserveRest(work);
    }
    work->Note(status);
    if (status.ok()) AwaitOthers(work);
  }
  work->outcome.hits = work->read->hits();
  work->CountRead(*work->read);
}

void ModelWorker::AwaitOthers(Work* work) const {
  for (int round = 0; round < kTakeOversMax; ++round) {
    // Not past there: our own blocks are in progress too.
    const size_t others_end = work->BlocksToRead(work->FirstReserved());
    const absl::Status status = work->read->Run(others_end, work->engine, &work->budget);
    work->Note(status);
    if (!status.ok() || work->read->usable_blocks() >= others_end) return;
    if (!TakeOver(others_end, work)) return;
  }
}

bool ModelWorker::TakeOver(size_t end, Work* work) const {
  const size_t begin = work->read->usable_blocks();
  // Of a public region the writer is another client's (PlanStores); its rest is computed.
  if (begin < work->public_blocks || work->read->wait_left() <= absl::ZeroDuration()) return false;
  auto write = std::make_unique<SuffixWrite>(work->node.get(), &name_space_, work->prompt,
                                             WriteOptionsOf(*work));
  const absl::Status status = write->Reserve(begin, end, &work->budget);
  work->Note(status);
  if (!status.ok() || write->stopped_by().has_value()) return false;
  // Where all of it is another's again, that one is waited for.
  if (write->first_reserved() < end) {
    work->stores.insert(work->stores.begin(), {work->node, begin, end, std::move(write)});
  }
  return true;
}

absl::Status ModelWorker::PlanStores(Work* work) const {
  const size_t usable = work->read->usable_blocks();
  const auto add = [&](std::shared_ptr<CacheNodeClient> node, size_t begin, size_t end) {
    auto write = std::make_unique<SuffixWrite>(node.get(), &name_space_, work->prompt,
                                               WriteOptionsOf(*work));
    work->stores.push_back({std::move(node), begin, end, std::move(write)});
  };
  if (work->LacksPublic()) {
    // Its node went while the public region was read: what is there counts, and nothing is stored.
    if (public_nodes_ == nullptr) {
      return absl::UnavailableError("the node went with a part of the public region unread");
    }
    absl::StatusOr<std::shared_ptr<CacheNodeClient>> node =
        public_nodes_->Get(work->outcome.replica.node_addresses.front());
    if (!node.ok()) return node.status();
    add(*std::move(node), usable, work->public_blocks);
  }
  const size_t begin = std::max(usable, work->public_blocks);
  if (begin < work->prompt->block_count()) add(work->node, begin, work->prompt->block_count());
  return absl::OkStatus();
}

absl::Status ModelWorker::ReserveRest(Work* work) const {
  if (absl::Status status = PlanStores(work); !status.ok()) return status;
  for (size_t i = 0; i < work->stores.size(); ++i) {
    SuffixWrite& write = *work->stores[i].write;
    absl::Status status;
    if (work->request.may_read && !work->read->namespace_known()) {
      status = write.Register(&work->budget);
    }
    if (status.ok()) {
      status = write.Reserve(work->stores[i].begin, work->stores[i].end, &work->budget);
    }
    if (status.ok() && !write.stopped_by().has_value()) continue;
    // What follows would have no parent.
    work->stores.resize(i + 1);
    return status;
  }
  return absl::OkStatus();
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
  for (size_t i = 0; i < work->stores.size(); ++i) {
    const absl::Status status = StoreRegion(work, i);
    if (IsGone(status)) return;
  }
}

absl::Status ModelWorker::StoreRegion(Work* work, size_t index) const {
  WorkOutcome& outcome = work->outcome;
  const Work::RegionStore& store = work->stores[index];
  SuffixWrite& write = *store.write;
  const absl::Status status = write.Write(work->engine, &work->budget);
  work->Note(status);
  outcome.blocks_stored += write.blocks_written();
  outcome.blocks_of_others += write.blocks_of_others();
  outcome.storing_stopped_by = write.stopped_by();
  outcome.latencies.put += write.time();
  // What others had in hand and did not bring, and what expired here while it was computed.
  const size_t begin = std::max(store.begin, work->read->usable_blocks());
  const size_t end = absl::IsAborted(status) ? store.end : write.first_reserved();
  if (IsGone(status) || begin >= end) return status;
  SuffixWrite again(store.node.get(), &name_space_, work->prompt, WriteOptionsOf(*work));
  absl::Status stored = again.Reserve(begin, end, &work->budget);
  if (stored.ok()) stored = again.Write(work->engine, &work->budget);
  work->Note(stored);
  outcome.blocks_stored += again.blocks_written();
  outcome.latencies.put += again.time();
  return status;
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
