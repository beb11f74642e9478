// ModelWorker: what the worker of an inference engine does with the cache for one request.
//
//   route -> lease, get and verify -> reserve -> compute -> write, commit -> end lease -> report
//
// The cache never fails a request and never makes it wrong. A node that is gone hands the request
// to the next replica of the router's list; when no router answers, the known replicas are that
// list, at once for requests that come within kRouterGoneFor of that. When none is left, everything
// is computed and nothing stored. Whatever else goes wrong is a miss. Blocks that another writer
// has in progress are waited for within a bound, and then taken as hits or computed here; where
// that writer goes, one of those who wait takes over, and the others wait for it. Only bytes whose
// digests were checked against their keys are used.
//
// A prompt may begin with a region of the tenant `public`, which all tenants share: then the
// request comes with the same tokens in the caller's own scope too. Where the public region is not
// wholly present and this worker may not write it, or is refused to, that form counts from the
// start: looked up by the router and at the node, stored, and reported.
//
// Every step has a deadline, and all calls of a request together have one more; computing has none.
// Thread-safe: holds no state of a request, and of its router only whether it was gone; calls block
// the caller. It does not run the engine, decode, or choose when to start a request.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/node_clients.h"
#include "client/cpp/peer_absence.h"
#include "client/cpp/prefill_engine.h"
#include "client/cpp/prefix_read.h"
#include "client/cpp/router_client.h"
#include "client/cpp/suffix_write.h"

namespace cairn {

// How long a router that did not answer is not asked again. Short: one that is back must be asked
// before many requests went elsewhere, and found nothing there; asking costs one worker its retry.
inline constexpr absl::Duration kRouterGoneFor = absl::Milliseconds(100);

struct ModelWorkerOptions {
  // Where requests go when there is no router: as a router would list them, best first.
  std::vector<RoutedReplica> fixed_replicas;
  // Where they go when there is one and it does not answer: in any order, since the prompt chooses
  // (rendezvous.h).
  std::vector<RoutedReplica> known_replicas;
  // Over all calls of one request; zero or less calls nobody.
  absl::Duration total_timeout = absl::Seconds(60);
  absl::Duration route_timeout = absl::Seconds(5);
  absl::Duration report_timeout = absl::Seconds(1);
  PrefixReadOptions read;
  SuffixWriteOptions write;
  // Prompts of fewer full blocks are not stored: they are as soon computed.
  size_t stored_blocks_min = 1;
  // One request in so many is routed by its tokens in place of keys, so that the router notices
  // prompts that begin with a changing value. 0: none.
  uint32_t routed_by_tokens_one_in = 64;
  // Tell the router when the prompt is computed, and not only when the request is over.
  bool report_first_token = true;
};

struct WorkRequest {
  // With regions; its keys are computed (Prompt::Make).
  const Prompt* prompt = nullptr;
  // Where the first of two regions of `prompt` is public: the same tokens in the caller's own scope
  // alone. Null: `prompt` counts whatever is present.
  const Prompt* own_prompt = nullptr;
  // That the answer may take; 0: not known.
  uint32_t output_tokens = 0;
  // False: nothing of this request is looked up and taken, or nothing of it is stored.
  bool may_read = true;
  bool may_store = true;
  // Of what is stored; else as the worker's options say.
  std::optional<KeepWish> keep = std::nullopt;
  // That the requests of one conversation share; empty: none. For the router.
  std::string session_id = {};
  // Workers that are not to take it: those where it failed before. When that leaves nobody,
  // everything is computed and nothing stored.
  std::vector<std::string> excluded_workers = {};
};

// Zero for steps that were not taken.
struct WorkLatencies {
  absl::Duration route;
  absl::Duration lookup;
  absl::Duration get;
  absl::Duration compute;
  absl::Duration put;
};

struct WorkOutcome {
  // How the engine's computation ended: the only thing that fails a request.
  absl::Status status;
  // The first thing that went wrong with the cache or the router, for logs. Not the request's
  // error.
  absl::Status cache_status;
  // A router chose the replicas.
  bool routed = false;
  // Replica that took the request; its worker is empty when none was known. `cached` says whether
  // its node answered.
  RoutedReplica replica;
  bool cached = false;
  // Replicas passed over, because their nodes were gone.
  uint32_t fallbacks = 0;
  // The request's own_prompt counted.
  bool own_scope = false;

  uint64_t prompt_tokens = 0;
  HitBlocks hits;
  uint64_t hit_tokens = 0;
  uint64_t computed_tokens = 0;
  uint64_t blocks_stored = 0;
  // Computed here, but present meanwhile or being written by another.
  uint64_t blocks_of_others = 0;
  std::optional<v1::ReserveOutcome> storing_stopped_by;
  // Segments that a node delivered with wrong bytes; not used, and reported to it.
  uint64_t mismatched_segments = 0;
  WorkLatencies latencies;
};

class ModelWorker {
 public:
  // Borrows the clients, which outlive it. `router` may be null: then the fixed replicas count.
  // `public_nodes` are clients that act for the tenant `public`, with which public regions are
  // written; null: this worker may not.
  ModelWorker(const ModelWorkerOptions& options, const NamespaceHandle& name_space,
              RouterClient* router, NodeClients* nodes, NodeClients* public_nodes = nullptr);

  // Serves one request. `engine` is this request's.
  WorkOutcome Run(const WorkRequest& request, PrefillEngine* engine) const;

 private:
  struct Work;

  void Route(Work* work) const;
  absl::StatusOr<RouteAnswer> AskRouter(Work* work) const;
  // The own scope, where the router knows that no node has the public region whole.
  void ChooseScope(Work* work) const;
  // How a call to the router ended.
  void NoteRouter(const absl::Status& status) const;
  // Reads at the first replica whose node answers.
  void Read(Work* work) const;
  bool ReadAt(const RoutedReplica& replica, Work* work) const;
  // Reads what the node has of the prompt, anew.
  absl::Status ReadFrom(CacheNodeClient* node, Work* work) const;
  // What was read is given back, and the own scope read at the same node.
  absl::Status ReadOwnScope(CacheNodeClient* node, Work* work) const;
  // Reserves the rest at the replica that was read from, and reads what others wrote meanwhile.
  void Reserve(Work* work) const;
  absl::Status ReserveRest(Work* work) const;
  // Reads what others have in hand. When their writers go, who reserves first takes over.
  void AwaitOthers(Work* work) const;
  // Reserves blocks up to `end` that others had in hand and did not bring. False: there is nothing
  // more to wait for.
  bool TakeOver(size_t end, Work* work) const;
  // Adds what is to be stored of each region, and by whom.
  absl::Status PlanStores(Work* work) const;
  SuffixWriteOptions WriteOptionsOf(const Work& work) const;
  void Compute(Work* work) const;
  void Store(Work* work) const;
  absl::Status StoreRegion(Work* work, size_t index) const;
  void Report(v1::OutcomePhase phase, Work* work) const;

  const ModelWorkerOptions options_;
  const NamespaceHandle name_space_;
  RouterClient* const router_;
  NodeClients* const nodes_;
  NodeClients* const public_nodes_;
  mutable PeerAbsence router_absence_;
  mutable std::atomic<uint32_t> routed_{0};
};

}  // namespace cairn
