#include "cache_node/service/decode_calls.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/service/decode_messages.h"
#include "cache_node/service/request_hash.h"
#include "cache_node/service/store_messages.h"
#include "cache_node/store/writer_digest.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/identity/key_chain.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/field_status.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/prompt_tenant.h"
#include "common/rpc/retry_status.h"
#include "common/wire/decode_limits.h"

namespace cairn::node {
namespace {

// Of requests that found the engine full, and of openings that found no room.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(20);
// Between lookup and pins: both are the node's own.
constexpr absl::Duration kOpeningLease = absl::Seconds(10);

absl::StatusOr<SequenceId> IdOf(absl::string_view bytes) {
  return IdFromProto<SequenceId>(bytes, "sequence");
}

// What the sequence is to know of its prompt; the tenants of its regions are resolved.
absl::StatusOr<SequencePrompt> PromptOf(PromptFields fields, const Namespace& name_space,
                                        const BlockHasher& hasher) {
  SequencePrompt prompt;
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(name_space);
  CAIRN_CHECK_OK(rules.status());  // It was registered.
  prompt.rules = *rules;
  prompt.keys = std::move(fields.keys);
  if (fields.regions.empty()) return prompt;
  absl::StatusOr<std::vector<BlockKey>> keys =
      PromptKeys(hasher, *rules, fields.regions, fields.extras);
  if (!keys.ok()) return keys.status();
  prompt.keys = *std::move(keys);
  bool has_tokens = true;
  uint64_t blocks = 0;
  for (const Region& region : fields.regions) {
    prompt.regions.push_back({.scope = region.scope, .first_block = static_cast<uint32_t>(blocks)});
    prompt.tokens.insert(prompt.tokens.end(), region.tokens.begin(), region.tokens.end());
    prompt.external_ids.insert(prompt.external_ids.end(), region.external_ids.begin(),
                               region.external_ids.end());
    has_tokens = has_tokens && !region.tokens.empty();
    blocks += region.external_ids.empty() ? region.tokens.size() / rules->block_tokens
                                          : region.external_ids.size();
  }
  if (!has_tokens) prompt.tokens.clear();
  prompt.extras = std::move(fields.extras);
  return prompt;
}

}  // namespace

absl::StatusOr<DecodeNamespace> FindDecodeNamespace(const BlockStore& store,
                                                    absl::string_view tenant,
                                                    absl::string_view fingerprint) {
  const absl::StatusOr<Fingerprint> id = FingerprintFromProto(fingerprint);
  if (!id.ok()) return id.status();
  DecodeNamespace found{.fingerprint = *id};
  if (store.IsKnownTo(tenant, *id)) found.map = store.FindPayloadMap(*id);
  if (found.map != nullptr) return found;
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("namespace ", ToHex(id->view()),
                                                 " is not registered here; register it first")),
      "NAMESPACE_UNKNOWN");
}

absl::Status NoBytesLeft(const DecodeBytes& bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("requests of attention and their answers: no more than ", bytes.bytes_max(),
                   " bytes at once (--decode-in-flight-bytes)"));
}

absl::Status WithDecodeRetry(absl::Status status) {
  if (!absl::IsResourceExhausted(status) || RetryAfter(status).has_value()) return status;
  return WithRetryAfter(std::move(status), kRetryAfter);
}

absl::Status DecodeCalls::CheckServes() const {
  if (parts_.serves) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this node serves no attention: it was started without --decode-memory, and without "
      "--decode-streams-max for leased blocks alone");
}

absl::Status DecodeCalls::CheckOpens() const {
  if (!parts_.has_sequences) {
    return absl::FailedPreconditionError(
        "this node keeps no sequences: it was started without --decode-memory");
  }
  if (!parts_.facts->draining()) return absl::OkStatus();
  return absl::UnavailableError("the node is draining; use another one");
}

absl::Status DecodeCalls::SetPrompt(const Caller& caller, const v1::OpenSequenceRequest& request,
                                    SequenceTable::Opening* opening) const {
  const v1::Prompt* const prompts[] = {&request.prompt()};
  absl::StatusOr<std::string> tenant = TenantOfPrompts(prompts, caller);
  if (!tenant.ok()) return tenant.status();
  opening->tenant = *std::move(tenant);
  const absl::StatusOr<DecodeNamespace> name_space =
      FindDecodeNamespace(*parts_.store, opening->tenant, request.fingerprint());
  if (!name_space.ok()) return name_space.status();
  opening->fingerprint = name_space->fingerprint;
  opening->map = name_space->map;
  const Namespace* const fields = parts_.store->FindNamespace(opening->fingerprint);
  if (fields == nullptr) return absl::FailedPreconditionError("the namespace was retired just now");
  absl::StatusOr<PromptFields> prompt = PromptFromProto(request.prompt());
  if (!prompt.ok()) return InField("prompt", prompt.status());
  for (Region& region : prompt->regions) {
    if (region.scope.tenant.empty()) region.scope.tenant = opening->tenant;
    const absl::Status may = TenantFor(caller, region.scope.tenant, TenantUse::kRead).status();
    if (!may.ok()) return InField("prompt", may);
  }
  absl::StatusOr<SequencePrompt> made = PromptOf(*std::move(prompt), *fields, *parts_.hasher);
  if (!made.ok()) return InField("prompt", made.status());
  opening->prompt = *std::move(made);
  if (request.first_block() <= opening->prompt.keys.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("first_block: ", request.first_block(),
                                                 ", at most ", opening->prompt.keys.size(),
                                                 ", the full blocks of the prompt"));
}

absl::StatusOr<std::optional<DecodeCalls::Opening>> DecodeCalls::BeginOpen(
    const Caller& caller, const v1::OpenSequenceRequest& request,
    v1::OpenSequenceResponse* response) {
  if (absl::Status status = CheckOpens(); !status.ok()) return status;
  if (absl::Status status = CheckWait(request.wait_ms()); !status.ok()) return status;
  if (request.idle_ms() > kSequenceIdleMsMax) {
    return absl::InvalidArgumentError(absl::StrCat("idle_ms: ", request.idle_ms(), ", at most ",
                                                   kSequenceIdleMsMax, "; 0 takes the default"));
  }
  std::optional<Opening> begun(std::in_place);
  SequenceTable::Opening& opening = begun->opening;
  if (absl::Status status = SetPrompt(caller, request, &opening); !status.ok()) return status;
  opening.writer = WriterDigest(caller.id);
  opening.first_block = request.first_block();
  opening.reserve_tokens = request.reserve_tokens();
  opening.idle = absl::Milliseconds(request.idle_ms());
  begun->blocks_max =
      request.blocks_max() == 0 ? std::numeric_limits<uint32_t>::max() : request.blocks_max();
  begun->wait = absl::Milliseconds(request.wait_ms());
  absl::StatusOr<RequestMemory::Turn> turn =
      parts_.memory->Begin(RequestOwnerOf(caller, opening.tenant), request.request_id(),
                           RequestHash("OpenSequence", request));
  if (!turn.ok()) return turn.status();
  if (turn->answer().has_value()) {
    CAIRN_CHECK(response->ParseFromString(*turn->answer()));
    return std::optional<Opening>();
  }
  begun->turn = *std::move(turn);
  if (request.first_block() == opening.prompt.keys.size()) return begun;
  v1::LookupRequest lookup;
  lookup.set_fingerprint(request.fingerprint());
  *lookup.add_prompts() = request.prompt();
  lookup.mutable_lease()->set_readers(1);
  lookup.mutable_lease()->set_ttl_ms(ToMilliseconds(kOpeningLease));
  lookup.set_wait_ms(request.wait_ms());
  lookup.set_touch(true);
  absl::StatusOr<std::optional<NodeCalls::PendingLookup>> pending =
      parts_.calls->BeginLookup(caller, lookup, &begun->found);
  if (!pending.ok()) return pending.status();
  CAIRN_CHECK(pending->has_value());  // It has no request id.
  begun->lookup.emplace(**std::move(pending));
  return begun;
}

absl::StatusOr<bool> DecodeCalls::TryPin(Opening& opening, bool last) {
  if (!opening.lookup.has_value()) return true;
  if (!parts_.calls->TryLookup(*opening.lookup, last, &opening.found)) return false;
  opening.lookup.reset();
  if (opening.found.lease().empty()) return true;  // Nothing is there.
  const std::optional<LeaseId> lease = LeaseId::FromBytes(opening.found.lease());
  CAIRN_CHECK(lease.has_value());
  SequenceTable::Opening& wish = opening.opening;
  absl::StatusOr<std::vector<BlockPin>> pins = parts_.store->LeasePins(
      wish.tenant, wish.fingerprint, *lease, 0, wish.first_block, opening.blocks_max);
  // What becomes of it does not matter: the pins are there, or not.
  (void)parts_.store->EndLease(wish.tenant, *lease, 0, {opening.found.results(0).blocks_leased()});
  if (!pins.ok()) return pins.status();
  wish.pins = *std::move(pins);
  return true;
}

absl::Status DecodeCalls::FinishOpen(SequenceTable& sequences, Opening opening, bool gone,
                                     v1::OpenSequenceResponse* response) {
  const std::string tenant = opening.opening.tenant;
  const absl::StatusOr<SequenceTable::Opened> opened = sequences.Open(std::move(opening.opening));
  if (!opened.ok()) return WithDecodeRetry(opened.status());
  if (gone) {
    sequences.Close(tenant, {opened->id});
    return absl::CancelledError("the client is gone");
  }
  response->set_sequence(std::string(opened->id.view()));
  response->set_first_token(opened->first_token);
  response->set_covered_tokens(opened->covered_tokens);
  response->set_reserved_tokens(opened->reserved_tokens);
  response->set_idle_ms(ToMilliseconds(opened->idle));
  opening.turn.Remember(response->SerializeAsString());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RequestMemory::Turn>> DecodeCalls::BeginFork(
    const Caller& caller, const v1::ForkSequenceRequest& request,
    v1::ForkSequenceResponse* response) {
  if (absl::Status status = CheckOpens(); !status.ok()) return status;
  if (request.count() < 1 || request.count() > kForksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("count: ", request.count(), ", must be from 1 to ", kForksMax));
  }
  absl::StatusOr<RequestMemory::Turn> turn =
      parts_.memory->Begin(RequestOwnerOf(caller, caller.tenant), request.request_id(),
                           RequestHash("ForkSequence", request));
  if (!turn.ok()) return turn.status();
  if (!turn->answer().has_value()) return std::optional<RequestMemory::Turn>(*std::move(turn));
  CAIRN_CHECK(response->ParseFromString(*turn->answer()));
  return std::optional<RequestMemory::Turn>();
}

absl::Status DecodeCalls::FinishFork(SequenceTable& sequences, const Caller& caller,
                                     const v1::ForkSequenceRequest& request,
                                     RequestMemory::Turn turn, v1::ForkSequenceResponse* response) {
  const absl::StatusOr<SequenceId> id = IdOf(request.sequence());
  if (!id.ok()) return id.status();
  const absl::StatusOr<SequenceTable::Forked> forked =
      sequences.Fork(caller.tenant, *id, request.count(), request.reserve_tokens());
  if (!forked.ok()) return WithDecodeRetry(forked.status());
  for (const SequenceId& fork : forked->ids) {
    response->mutable_sequences()->append(fork.view().data(), fork.view().size());
  }
  response->set_length_tokens(forked->length_tokens);
  turn.Remember(response->SerializeAsString());
  return absl::OkStatus();
}

absl::Status DecodeCalls::Truncate(SequenceTable& sequences, const Caller& caller,
                                   const v1::TruncateSequenceRequest& request,
                                   v1::TruncateSequenceResponse* response) {
  const absl::StatusOr<SequenceId> id = IdOf(request.sequence());
  if (!id.ok()) return id.status();
  const absl::StatusOr<uint64_t> length =
      sequences.Truncate(caller.tenant, *id, request.length_tokens());
  if (!length.ok()) return length.status();
  response->set_length_tokens(*length);
  return absl::OkStatus();
}

absl::Status DecodeCalls::ReleaseWindow(SequenceTable& sequences, const Caller& caller,
                                        const v1::ReleaseWindowRequest& request,
                                        v1::ReleaseWindowResponse* response) {
  const absl::StatusOr<SequenceId> id = IdOf(request.sequence());
  if (!id.ok()) return id.status();
  const absl::StatusOr<uint64_t> blocks =
      sequences.ReleaseWindow(caller.tenant, *id, request.before_token(), request.sink_tokens());
  if (!blocks.ok()) return blocks.status();
  response->set_blocks(*blocks);
  return absl::OkStatus();
}

absl::Status DecodeCalls::Get(SequenceTable& sequences, const Caller& caller,
                              const v1::GetSequenceRequest& request,
                              v1::GetSequenceResponse* response) {
  const absl::StatusOr<SequenceId> id = IdOf(request.sequence());
  if (!id.ok()) return id.status();
  const absl::StatusOr<const Sequence*> sequence = sequences.Find(caller.tenant, *id);
  if (!sequence.ok()) return sequence.status();
  ToMessage(**sequence, response);
  return absl::OkStatus();
}

absl::Status DecodeCalls::Close(SequenceTable& sequences, const Caller& caller,
                                const v1::CloseSequencesRequest& request,
                                v1::CloseSequencesResponse* response) {
  const std::string& bytes = request.sequences();
  if (bytes.size() % kKeyBytes != 0 || bytes.size() / kKeyBytes > kSequencesPerCloseMax) {
    return absl::InvalidArgumentError(absl::StrCat("sequences: ", bytes.size(),
                                                   " bytes, must be 16 for each of at most ",
                                                   kSequencesPerCloseMax));
  }
  std::vector<SequenceId> ids;
  for (size_t at = 0; at < bytes.size(); at += kKeyBytes) {
    ids.push_back(*SequenceId::FromBytes(absl::string_view(bytes).substr(at, kKeyBytes)));
  }
  response->set_closed(static_cast<uint32_t>(sequences.Close(caller.tenant, ids)));
  return absl::OkStatus();
}

}  // namespace cairn::node
