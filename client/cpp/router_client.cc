#include "client/cpp/router_client.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/labels.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/status_mapping.h"
#include "common/rpc/target.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

struct RequestIdTag;
using RequestId = Bytes16<RequestIdTag>;
static_assert(kRequestIdBytes == kKeyBytes);

v1::Prompt PromptMessage(const Prompt& prompt, bool by_tokens) {
  const bool has_tokens = prompt.token_count() > 0 && prompt.token_count() <= kTokensPerCallMax;
  if (has_tokens && (by_tokens || prompt.keys().empty())) {
    return PromptToProto(prompt.regions(), prompt.extras());
  }
  v1::Prompt message;
  message.set_keys(KeysToProto(prompt.keys()));
  return message;
}

void SetWishes(const RouteOptions& options, v1::RouteRequest* request) {
  request->set_session_id(options.session_id);
  LabelsToProto(options.required_labels, request->mutable_required_labels());
  for (const auto& [label, seconds] : options.preferred_labels) {
    v1::PreferredLabel* preferred = request->add_preferred_labels();
    preferred->mutable_label()->set_key(label.key);
    preferred->mutable_label()->set_value(label.value);
    preferred->set_seconds(seconds);
  }
  request->mutable_excluded_workers()->Add(options.excluded_workers.begin(),
                                           options.excluded_workers.end());
  // One that has begun is none that is not there.
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(options.deadline, absl::Milliseconds(1)));
  request->set_deadline_ms(
      static_cast<uint32_t>(std::clamp<int64_t>(ms, 0, std::numeric_limits<uint32_t>::max())));
}

std::vector<TierTokensMatched> MatchedFromProto(
    const google::protobuf::RepeatedPtrField<v1::TierTokens>& tiers) {
  std::vector<TierTokensMatched> matched;
  for (const v1::TierTokens& tier : tiers) matched.push_back({tier.tier(), tier.tokens()});
  return matched;
}

RoutedReplica ReplicaFromProto(const v1::RankedReplica& message) {
  RoutedReplica replica;
  replica.worker_address = message.worker_address();
  replica.node_id = message.node_id();
  replica.node_addresses.assign(message.node_addresses().begin(), message.node_addresses().end());
  replica.matched = MatchedFromProto(message.matched());
  replica.coming_tokens = message.coming_tokens();
  replica.remote_tokens = message.remote_tokens();
  replica.remote_node_id = message.remote_node_id();
  replica.score = message.score();
  replica.queued_seconds = message.queued_seconds();
  replica.reason = message.reason();
  replica.terms = message.terms();
  replica.holder_state = message.holder_state();
  return replica;
}

absl::StatusOr<RouteAnswer> AnswerFromProto(const v1::RouteResponse& response) {
  const auto booking = RouteBookingId::FromBytes(response.booking());
  const auto incarnation = Incarnation::FromBytes(response.router_incarnation());
  if (!booking || !incarnation || response.replicas().empty()) {
    return absl::InternalError(absl::StrCat("the router answered ", response.replicas_size(),
                                            " replicas, a booking of ", response.booking().size(),
                                            " bytes and an incarnation of ",
                                            response.router_incarnation().size()));
  }
  RouteAnswer answer;
  for (const v1::RankedReplica& replica : response.replicas()) {
    answer.replicas.push_back(ReplicaFromProto(replica));
  }
  answer.booking = {*booking, *incarnation};
  answer.degraded = response.degraded();
  answer.deadline_at_risk = response.deadline_at_risk();
  answer.policy = response.policy();
  answer.score_unit = response.score_unit();
  return answer;
}

PrefixAnswer AnswerFromProto(const v1::LookupPrefixResponse& response) {
  PrefixAnswer answer;
  answer.namespace_known = response.namespace_known();
  answer.blocks_total = response.blocks_total();
  for (const v1::HolderMatch& holder : response.holders()) {
    answer.holders.push_back(
        {.node_id = holder.node_id(),
         .node_addresses = {holder.node_addresses().begin(), holder.node_addresses().end()},
         .state = holder.state(),
         .blocks = holder.blocks(),
         .matched = MatchedFromProto(holder.matched())});
  }
  return answer;
}

ReplicaEntry EntryFromProto(const v1::ReplicaInfo& message) {
  ReplicaEntry entry;
  entry.worker_address = message.worker_address();
  entry.node_id = message.node_id();
  entry.node_addresses.assign(message.node_addresses().begin(), message.node_addresses().end());
  entry.state = message.state();
  entry.incarnation = Incarnation::FromBytes(message.incarnation());
  entry.blocks = message.blocks();
  entry.prefill_tokens = message.prefill_tokens();
  entry.kv_tokens = message.kv_tokens();
  entry.requests = message.requests();
  entry.prefill_tokens_per_second = message.prefill_tokens_per_second();
  entry.stale_share = message.stale_share();
  entry.conflict = message.conflict();
  for (const v1::Label& label : message.labels()) {
    entry.labels.push_back({label.key(), label.value()});
  }
  entry.kv_tokens_max = message.kv_tokens_max();
  entry.drain_state = message.drain_state();
  return entry;
}

absl::StatusOr<ReplicaList> ListFromProto(const v1::ListReplicasResponse& response) {
  const auto incarnation = Incarnation::FromBytes(response.router_incarnation());
  if (!incarnation) {
    return absl::InternalError(absl::StrCat("the router answered an incarnation of ",
                                            response.router_incarnation().size(), " bytes"));
  }
  ReplicaList list;
  for (const v1::ReplicaInfo& replica : response.replicas()) {
    list.replicas.push_back(EntryFromProto(replica));
  }
  for (const v1::HolderInfo& holder : response.holders()) {
    list.holders.push_back(
        {holder.address(), holder.state(), holder.node_id(), holder.error(), holder.held_back()});
  }
  list.router_incarnation = *incarnation;
  list.ready = response.ready();
  list.degraded = response.degraded();
  list.membership = {response.membership().source(), response.membership().nodes(),
                     response.membership().error()};
  return list;
}

}  // namespace

absl::Status ValidateRouterClientOptions(const RouterClientOptions& options) {
  const std::vector<std::string> targets = absl::StrSplit(options.target, ',');
  if (targets.size() > kRoutersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: ", targets.size(), " routers, at most ", kRoutersMax));
  }
  for (const std::string& target : targets) {
    if (const absl::Status status = ValidateTarget(target); !status.ok()) {
      return InField("target", status);
    }
  }
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("timeout: must be positive");
  }
  return ValidateRetryOptions(options.retry);
}

RouterClient::RouterClient(const RouterClientOptions& options, const ClientParts& parts)
    : options_(options),
      runner_(options.retry, parts.clock, parts.random, parts.wait),
      random_(parts.random) {
  CAIRN_CHECK_OK(ValidateRouterClientOptions(options));
  for (absl::string_view target : absl::StrSplit(options_.target, ',')) {
    const std::string address(target);
    targets_.push_back({address, v1::Router::NewStub(grpc::CreateCustomChannel(
                                     address,
                                     options_.credentials ? options_.credentials
                                                          : grpc::InsecureChannelCredentials(),
                                     MakeChannelArguments(options_.channel)))});
  }
  incarnations_.resize(targets_.size());
  // So that clients with one list spread over it.
  if (targets_.size() > 1) current_ = random_->New<RequestId>().bytes[0] % targets_.size();
}

size_t RouterClient::Begin(absl::string_view incarnation) const {
  absl::MutexLock lock(&mutex_);
  if (incarnation.empty()) return current_;
  const auto known = std::find(incarnations_.begin(), incarnations_.end(), incarnation);
  return known == incarnations_.end() ? current_
                                      : static_cast<size_t>(known - incarnations_.begin());
}

void RouterClient::NoteGone(size_t target) {
  absl::MutexLock lock(&mutex_);
  if (current_ == target) current_ = (target + 1) % targets_.size();
}

void RouterClient::NoteIncarnation(size_t target, const std::string& incarnation) {
  absl::MutexLock lock(&mutex_);
  incarnations_[target] = incarnation;
}

template <typename Request, typename Response>
absl::Status RouterClient::Call(Method<Request, Response> method, const Request& request,
                                absl::Duration timeout, Response* response,
                                absl::string_view incarnation) {
  if (timeout <= absl::ZeroDuration()) timeout = options_.timeout;
  size_t target = Begin(incarnation);
  const size_t others = targets_.size() - 1;
  return runner_.Run(timeout, {.idempotent = true}, [&](const CallRunner::Attempt& attempt) {
    absl::Status status;
    absl::Duration left = attempt.remaining;  // What a silent one took is gone.
    // All of them before a wait.
    for (size_t passed = 0; passed <= others; ++passed) {
      const absl::Duration most = passed < others ? std::min(left, timeout / 4) : left;
      grpc::ClientContext context;
      if (options_.metadata != nullptr) options_.metadata->AddTo(&context);
      SetDeadline(most, &context);
      status = FromGrpcStatus((targets_[target].stub.get()->*method)(&context, request, response));
      const bool silent = absl::IsDeadlineExceeded(status) && most < left;
      const bool gone = absl::IsUnavailable(status) && !LeavesNobody(status);
      if constexpr (requires { response->router_incarnation(); }) {
        if (status.ok()) NoteIncarnation(target, response->router_incarnation());
      }
      if (!silent && !gone) return status;
      if (silent) left -= most;
      NoteGone(target);
      target = (target + 1) % targets_.size();
    }
    return status;
  });
}

absl::StatusOr<RouteAnswer> RouterClient::Route(const NamespaceHandle& name_space,
                                                const Prompt& prompt, const RouteOptions& options) {
  v1::RouteRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  *request.mutable_prompt() = PromptMessage(prompt, options.by_tokens);
  request.set_prompt_tokens(options.prompt_tokens > 0 ? options.prompt_tokens
                                                      : prompt.token_count());
  request.set_output_tokens(options.output_tokens);
  request.set_policy(options.policy);
  SetWishes(options, &request);
  request.set_request_id(std::string(random_->New<RequestId>().view()));
  v1::RouteResponse response;
  const absl::Status status = Call(&v1::Router::Stub::Route, request, options.timeout, &response);
  if (!status.ok()) return status;
  return AnswerFromProto(response);
}

absl::StatusOr<PrefixAnswer> RouterClient::LookupPrefix(const NamespaceHandle& name_space,
                                                        const Prompt& prompt,
                                                        absl::Duration timeout) {
  v1::LookupPrefixRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  *request.mutable_prompt() = PromptMessage(prompt, /*by_tokens=*/false);
  v1::LookupPrefixResponse response;
  const absl::Status status = Call(&v1::Router::Stub::LookupPrefix, request, timeout, &response);
  if (!status.ok()) return status;
  return AnswerFromProto(response);
}

absl::StatusOr<bool> RouterClient::ReportOutcome(const RouteOutcome& outcome) {
  v1::ReportOutcomeRequest request;
  request.set_booking(std::string(outcome.booking.id.view()));
  request.set_router_incarnation(std::string(outcome.booking.router_incarnation.view()));
  request.set_phase(outcome.phase);
  request.set_worker_address(outcome.worker_address);
  request.set_cached_tokens(outcome.cached_tokens);
  request.set_computed_tokens(outcome.computed_tokens);
  request.set_compute_seconds(absl::ToDoubleSeconds(outcome.compute));
  request.set_output_tokens(outcome.output_tokens);
  request.set_served_tokens(outcome.served_tokens);
  request.set_preemptions(outcome.preemptions);
  request.set_refusals(outcome.refusals);
  v1::ReportOutcomeResponse response;
  const absl::Status status = Call(&v1::Router::Stub::ReportOutcome, request, outcome.timeout,
                                   &response, outcome.booking.router_incarnation.view());
  if (!status.ok()) return status;
  return response.known();
}

absl::StatusOr<ReplicaList> RouterClient::ListReplicas(absl::Duration timeout) {
  v1::ListReplicasResponse response;
  const absl::Status status =
      Call(&v1::Router::Stub::ListReplicas, v1::ListReplicasRequest(), timeout, &response);
  if (!status.ok()) return status;
  return ListFromProto(response);
}

}  // namespace cairn
