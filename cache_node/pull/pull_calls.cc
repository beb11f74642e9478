#include "cache_node/pull/pull_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/retry_status.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

// Of one answer, so that it fits a message.
constexpr uint64_t kDescribeTokensMax = kTokensPerCallMax / 2;

constexpr absl::Duration kBusyRetryAfter = absl::Milliseconds(500);

absl::StatusOr<std::vector<BlockKey>> KeysOf(absl::string_view bytes, size_t max) {
  absl::StatusOr<std::vector<BlockKey>> keys = KeysFromProto(bytes, "keys", max);
  if (!keys.ok()) return keys;
  if (keys->empty()) return absl::InvalidArgumentError("keys: none; give at least one");
  return keys;
}

// A router moves nothing to itself, and knows from the feeds whose blocks there are: it may ask for
// any tenant, whom it names.
absl::StatusOr<std::string> TenantOf(const Caller& caller, const std::string& requested) {
  if (!caller.Is(Role::kRouter) || requested.empty()) {
    return TenantFor(caller, requested, TenantUse::kWrite);
  }
  if (requested.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(requested.size(), " bytes, at most ", kNameBytesMax));
  }
  return requested;
}

}  // namespace

absl::StatusOr<PullCalls::Job> PullCalls::MakeJob(const Caller& caller,
                                                  const v1::PullBlocksRequest& request) const {
  Job job;
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  job.target.fingerprint = *fingerprint;
  absl::StatusOr<std::string> tenant = TenantOf(caller, request.tenant());
  if (!tenant.ok()) return InField("tenant", tenant.status());
  job.target.tenant = *std::move(tenant);
  absl::StatusOr<std::vector<BlockKey>> keys = KeysOf(request.keys(), kKeysPerPullMax);
  if (!keys.ok()) return keys.status();
  job.keys = *std::move(keys);
  if (absl::Status status = CheckNoDuplicates(job.keys, "keys"); !status.ok()) return status;
  if (request.wait_ms() > kWaitMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait_ms: ", request.wait_ms(), ", at most ", kWaitMsMax));
  }
  if (request.source() == parts_.node_id) {
    return absl::InvalidArgumentError("source: this node itself; name a peer");
  }
  absl::StatusOr<std::shared_ptr<PullSource>> source = parts_.sources->Find(request.source());
  if (!source.ok()) return source.status();
  job.source = *std::move(source);
  job.begun = parts_.clock->SteadyNow();
  return job;
}

absl::Status PullCalls::CheckTarget(const Job& job) const {
  const PullTarget& target = job.target;
  if (parts_.rates != nullptr) {
    if (absl::Status status = parts_.rates->Admit(target.tenant); !status.ok()) return status;
  }
  const Namespace* name_space = parts_.store->IsKnownTo(target.tenant, target.fingerprint)
                                    ? parts_.store->FindNamespace(target.fingerprint)
                                    : nullptr;
  if (name_space == nullptr) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat("namespace ", ToHex(target.fingerprint.view()),
                                                   " is not registered here; register it first")),
        "NAMESPACE_UNKNOWN");
  }
  if (parts_.public_scope == nullptr || target.tenant != kPublicTenant) return absl::OkStatus();
  return parts_.public_scope->Check(name_space->key_scheme, job.keys);
}

absl::StatusOr<PullCalls::Pending> PullCalls::Begin(const Caller& caller,
                                                    const v1::PullBlocksRequest& request) {
  absl::StatusOr<Job> job = MakeJob(caller, request);
  if (!job.ok()) return job.status();
  if (absl::Status status = CheckTarget(*job); !status.ok()) return status;
  Pending pending;
  pending.wait_ = absl::Milliseconds(request.wait_ms());
  const PayloadMap* map = parts_.store->FindPayloadMap(job->target.fingerprint);
  pending.block_bytes_ = map == nullptr ? 0 : map->block_bytes();
  if (absl::Status status = Take(&*job); !status.ok()) return status;
  pending.flights_ = std::move(job->flights);
  return pending;
}

absl::Status PullCalls::Take(Job* job) {
  const BlockRecords here =
      parts_.store->DescribeBlocks(job->target.tenant, job->target.fingerprint, job->keys, 0);
  std::vector<BlockKey> missing;
  for (size_t i = 0; i < job->keys.size(); ++i) {
    const BlockState state = here.blocks[i].state;
    const bool here_already =
        state == BlockState::kHost || state == BlockState::kDisk || state == BlockState::kDevice;
    if (!here_already) missing.push_back(job->keys[i]);
  }
  job->flights.assign(job->keys.size(), nullptr);
  job->own.assign(job->keys.size(), false);
  if (missing.empty()) return absl::OkStatus();
  absl::MutexLock lock(&order_mutex_);
  const absl::StatusOr<PullBoard::Joined> joined = parts_.board->Join(job->target, missing);
  if (!joined.ok()) return joined.status();
  size_t own = 0;
  for (size_t i = 0, next = 0; i < job->keys.size() && next < missing.size(); ++i) {
    if (job->keys[i] != missing[next]) continue;
    job->flights[i] = joined->flights[next];
    job->own[i] = joined->own[next];
    own += joined->own[next] ? 1 : 0;
    ++next;
  }
  parts_.metrics.shared.Increment(static_cast<double>(missing.size() - own));
  if (own == 0) return absl::OkStatus();
  const absl::Status submitted = parts_.threads->Submit(
      [this, run = *job]() { Run(run); }, job->keys.size() * (sizeof(BlockKey) + sizeof(Job)));
  if (submitted.ok()) return submitted;
  for (size_t i = 0; i < job->keys.size(); ++i) {
    if (job->own[i]) End(*job, i, PullOutcome::kSkipped);
  }
  return WithRetryAfter(submitted, kBusyRetryAfter);
}

void PullCalls::End(const Job& job, size_t index, PullOutcome outcome,
                    std::shared_ptr<const std::string> why) {
  parts_.board->End(job.target, job.keys[index], outcome, std::move(why));
  parts_.metrics.Ended(outcome);
  if (parts_.settled) parts_.settled();
}

PullOutcome PullCalls::RunOwn(const Job& job, size_t first, size_t end) {
  PullOutcome last = PullOutcome::kSkipped;
  std::vector<PullOutcome> rest;  // From the first that did not come, told together with why.
  const absl::Status status = parts_.puller->Pull(
      job.target, job.source.get(), absl::MakeConstSpan(job.keys).subspan(first, end - first),
      job.keys, [&](size_t index, PullOutcome outcome) {
        last = outcome;
        if (LeadsOn(outcome)) return End(job, first + index, outcome);
        rest.push_back(outcome);
      });
  const auto why = status.ok() ? nullptr : std::make_shared<const std::string>(status.message());
  for (size_t i = 0; i < rest.size(); ++i) End(job, end - rest.size() + i, rest[i], why);
  return last;
}

void PullCalls::Run(const Job& job) {
  bool leads_on = true;
  for (size_t i = 0; i < job.keys.size();) {
    if (!job.own[i]) {
      if (job.flights[i] != nullptr) leads_on = LeadsOn(parts_.board->Await(job.flights[i]));
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < job.keys.size() && job.own[end]) ++end;
    if (leads_on) {
      leads_on = LeadsOn(RunOwn(job, i, end));
    } else {
      for (size_t at = i; at < end; ++at) End(job, at, PullOutcome::kSkipped);
    }
    i = end;
  }
  parts_.metrics.seconds.Observe(absl::ToDoubleSeconds(parts_.clock->SteadyNow() - job.begun));
}

bool PullCalls::TryAnswer(const Pending& pending, bool last,
                          v1::PullBlocksResponse* response) const {
  const auto is_over = [this](const PullBoard::FlightRef& flight) {
    return flight == nullptr || parts_.board->OutcomeOf(flight).has_value();
  };
  const std::vector<PullBoard::FlightRef>& flights = pending.flights_;
  while (pending.over_ < flights.size() && is_over(flights[pending.over_])) ++pending.over_;
  if (pending.over_ < flights.size() && !last) return false;
  std::vector<PullOutcome> outcomes;
  std::shared_ptr<const std::string> why;
  bool complete = true;
  for (const PullBoard::FlightRef& flight : flights) {
    const std::optional<PullOutcome> outcome =
        flight == nullptr ? PullOutcome::kPresent : parts_.board->OutcomeOf(flight);
    complete = complete && outcome.has_value();
    outcomes.push_back(outcome.value_or(PullOutcome::kInProgress));
    if (why == nullptr && flight != nullptr) why = parts_.board->WhyOf(flight);
  }
  for (const PullOutcome outcome : outcomes) {
    response->add_outcomes(static_cast<v1::PullOutcome>(outcome));
  }
  response->set_pulled_bytes(
      pending.block_bytes_ *
      static_cast<uint64_t>(std::count(outcomes.begin(), outcomes.end(), PullOutcome::kPulled)));
  response->set_complete(complete);
  if (why != nullptr) response->set_detail(*why);
  return true;
}

absl::Status PullCalls::DescribeBlocks(const Caller& caller,
                                       const v1::DescribeBlocksRequest& request,
                                       v1::DescribeBlocksResponse* response) const {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintFromProto(request.fingerprint());
  if (!fingerprint.ok()) return fingerprint.status();
  const absl::StatusOr<std::vector<BlockKey>> keys = KeysOf(request.keys(), kKeysPerDescribeMax);
  if (!keys.ok()) return keys.status();
  const BlockRecords records =
      parts_.store->DescribeBlocks(caller.tenant, *fingerprint, *keys, kDescribeTokensMax);
  response->set_node_id(parts_.node_id);
  for (const BlockScope& scope : records.scopes) {
    v1::ScopeRecord* message = response->add_scopes();
    message->set_digest(std::string(scope.digest.view()));
    message->set_adapter(scope.adapter);
    message->set_salt(scope.salt);
  }
  for (const BlockRecord& record : records.blocks) {
    v1::BlockRecord* message = response->add_records();
    message->set_state(static_cast<v1::BlockState>(record.state));
    if (record.state != BlockState::kHost) continue;
    if (record.parent.has_value()) message->set_parent_key(std::string(record.parent->view()));
    message->set_parent_public(record.parent_public);
    message->set_scope(record.scope);
    message->mutable_tokens()->Add(record.tokens.begin(), record.tokens.end());
    message->set_writer(record.provenance.writer);
    message->set_written_unix_ms(record.provenance.written_unix_ms);
    message->set_priority(record.retention.priority);
    message->set_priority_until_unix_ms(record.retention.priority_until_unix_ms);
    message->set_expires_unix_ms(record.retention.expires_unix_ms);
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
