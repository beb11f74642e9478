#include "client/cpp/cache_node_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/lookup_call.h"
#include "client/cpp/put_call.h"
#include "client/cpp/reserve_call.h"
#include "common/base/hex.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/wire/limits.h"

namespace cairn {

using Stub = v1::CacheNode::Stub;

CacheNodeClient::CacheNodeClient(const ClientOptions& options, const ClientParts& parts)
    : link_(options, parts), reader_(&link_), hasher_(parts.hasher) {}

absl::StatusOr<NamespaceHandle> CacheNodeClient::RegisterNamespace(const std::string& name,
                                                                   const Namespace& fields) {
  absl::StatusOr<NamespaceHandle> handle = NamespaceHandle::Make(name, fields);
  if (!handle.ok()) return handle.status();
  v1::RegisterNamespaceRequest request;
  request.set_name(name);
  *request.mutable_fields() = NamespaceToProto(fields);
  v1::RegisterNamespaceResponse response;
  const absl::Status status = link_.Call(&Stub::RegisterNamespace, request, {}, {}, &response);
  if (!status.ok()) return status;
  if (response.fingerprint() != handle->fingerprint().view() ||
      response.block_bytes() != handle->block_bytes()) {
    return absl::InternalError(absl::StrCat(
        "the node computed fingerprint ", ToHex(response.fingerprint()), " and ",
        response.block_bytes(), " bytes a block for this namespace; this client computes ",
        ToHex(handle->fingerprint().view()), " and ", handle->block_bytes(),
        ": they are of versions that do not fit"));
  }
  handle->set_tenant(response.tenant());
  return handle;
}

absl::StatusOr<v1::PurgeWriterResponse> CacheNodeClient::PurgeWriter(const std::string& writer,
                                                                     absl::Time since) {
  v1::PurgeWriterRequest request;
  request.set_writer(writer);
  request.set_since_unix_ms(absl::ToUnixMillis(since));
  v1::PurgeWriterResponse response;
  const absl::Status status = link_.Call(&Stub::PurgeWriter, request, {}, {}, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::RetireNamespaceResponse> CacheNodeClient::RetireNamespace(
    const Fingerprint& fingerprint) {
  v1::RetireNamespaceRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  v1::RetireNamespaceResponse response;
  const absl::Status status = link_.Call(&Stub::RetireNamespace, request, {}, {}, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ClearScopeResponse> CacheNodeClient::ClearScope(const Fingerprint& fingerprint,
                                                                   const Scope& scope) {
  v1::ClearScopeRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  *request.mutable_scope() = ScopeToProto(scope);
  v1::ClearScopeResponse response;
  const absl::Status status = link_.Call(&Stub::ClearScope, request, {}, {}, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<Prompt> CacheNodeClient::MakePrompt(const NamespaceHandle& name_space,
                                                   absl::Span<const Region> regions,
                                                   const ExtrasByBlock& extras) const {
  return Prompt::Make(*hasher_, name_space, regions, extras);
}

absl::StatusOr<LookupAnswer> CacheNodeClient::Lookup(const NamespaceHandle& name_space,
                                                     absl::Span<const Prompt> prompts,
                                                     const LookupOptions& options) {
  return LookupPrompts(&link_, name_space, prompts, options);
}

absl::StatusOr<LeaseState> CacheNodeClient::GetLease(const LeaseId& lease, absl::Duration wait) {
  if (wait > absl::Milliseconds(kWaitMsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("wait: ", absl::FormatDuration(wait), "; at most ", kWaitMsMax, " ms"));
  }
  v1::GetLeaseRequest request;
  request.set_lease(std::string(lease.view()));
  request.set_wait_ms(MillisecondsOf(wait, kWaitMsMax));
  v1::GetLeaseResponse response;
  const absl::Status status =
      link_.Call(&Stub::GetLease, request, link_.ControlTimeout({}) + wait, {}, &response);
  if (!status.ok()) return status;
  return LeaseState{
      .readers = response.readers(),
      .readers_ended = response.readers_ended(),
      .usable_blocks = {response.usable_blocks().begin(), response.usable_blocks().end()},
      .complete = response.complete()};
}

ReadLease CacheNodeClient::JoinLease(const LeaseId& lease, uint32_t reader, size_t prompts) {
  return ReadLease(&link_, lease, reader, prompts, absl::ZeroDuration());
}

absl::StatusOr<WriteSession> CacheNodeClient::Reserve(const NamespaceHandle& name_space,
                                                      const Prompt& prompt, size_t first_block,
                                                      size_t blocks,
                                                      const ReserveOptions& options) {
  return ReserveBlocks(&link_, name_space, prompt, first_block, blocks, options);
}

WriteSession CacheNodeClient::AttachWrite(const NamespaceHandle& name_space,
                                          const WriteSession::Ticket& ticket) {
  WriteSession::Reservation reservation;
  reservation.token = ticket.token;
  reservation.keys = ticket.keys;
  reservation.answers.resize(ticket.keys.size());
  for (const uint32_t index : ticket.reserved) {
    reservation.answers.at(index).set_outcome(v1::RESERVE_OUTCOME_RESERVED);
  }
  return WriteSession(&link_, name_space, std::move(reservation));
}

absl::StatusOr<PutResult> CacheNodeClient::Put(const NamespaceHandle& name_space,
                                               const Prompt& prompt, SegmentSource source,
                                               const PutOptions& options) {
  return PutBlocks(&link_, name_space, prompt, source, options);
}

GetResult CacheNodeClient::Get(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                               SegmentPlace place, const GetOptions& options) {
  return reader_.Get(name_space, keys, place, options);
}

absl::StatusOr<InPlaceBlocks> CacheNodeClient::ReadInPlace(const NamespaceHandle& name_space,
                                                           absl::Span<const BlockKey> keys,
                                                           const ReadLease* lease) {
  if (link_.local() == nullptr) return absl::UnavailableError("this client uses no local path");
  PlaceWish wish;
  if (lease != nullptr) {
    wish = {.lease = lease->id(), .reader = lease->reader(), .hold = true};
  }
  wish.deadline = link_.local()->Deadline(link_.ControlTimeout({}));
  absl::StatusOr<HeldPlaces> held =
      HeldPlaces::Ask(link_.local(), name_space.fingerprint(), keys, wish);
  if (!held.ok()) return held.status();
  return InPlaceBlocks(name_space, keys, *std::move(held));
}

LocalStats CacheNodeClient::local_stats() const {
  return link_.local() == nullptr ? LocalStats() : link_.local()->stats();
}

absl::StatusOr<bool> CacheNodeClient::ReportMismatch(const Fingerprint& fingerprint,
                                                     const BlockKey& key, const SegmentId& id) {
  return reader_.ReportMismatch(fingerprint, key, id);
}

absl::StatusOr<std::vector<bool>> CacheNodeClient::Delete(const Fingerprint& fingerprint,
                                                          absl::Span<const BlockKey> keys) {
  v1::DeleteRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  request.set_keys(KeysToProto(keys));
  v1::DeleteResponse response;
  const absl::Status status = link_.Call(&Stub::Delete, request, {}, {}, &response);
  if (!status.ok()) return status;
  if (static_cast<size_t>(response.removed_size()) != keys.size()) {
    return absl::InternalError(absl::StrCat("the node answered ", response.removed_size(),
                                            " results for ", keys.size(), " keys"));
  }
  return std::vector<bool>(response.removed().begin(), response.removed().end());
}

absl::StatusOr<std::vector<v1::PinOutcome>> CacheNodeClient::PinBlocks(
    const Fingerprint& fingerprint, absl::Span<const BlockKey> keys, absl::Duration pin_for) {
  if (pin_for < absl::ZeroDuration() || pin_for > absl::Milliseconds(kPinMsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pin_for: ", absl::FormatDuration(pin_for), "; from 0 to ", kPinMsMax, " ms"));
  }
  v1::PinBlocksRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  request.set_keys(KeysToProto(keys));
  // Rounded up: zero ends pins.
  request.set_pin_ms(
      static_cast<uint64_t>(absl::ToInt64Milliseconds(absl::Ceil(pin_for, absl::Milliseconds(1)))));
  v1::PinBlocksResponse response;
  const absl::Status status = link_.Call(&Stub::PinBlocks, request, {}, {}, &response);
  if (!status.ok()) return status;
  if (static_cast<size_t>(response.outcomes_size()) != keys.size()) {
    return absl::InternalError(absl::StrCat("the node answered ", response.outcomes_size(),
                                            " outcomes for ", keys.size(), " keys"));
  }
  std::vector<v1::PinOutcome> outcomes;
  for (const int outcome : response.outcomes()) {
    outcomes.push_back(static_cast<v1::PinOutcome>(outcome));
  }
  return outcomes;
}

absl::StatusOr<PullAnswer> CacheNodeClient::PullBlocks(const Fingerprint& fingerprint,
                                                       const std::string& source,
                                                       absl::Span<const BlockKey> keys,
                                                       absl::Duration wait) {
  v1::PullBlocksRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  request.set_source(source);
  request.set_keys(KeysToProto(keys));
  request.set_wait_ms(MillisecondsOf(wait, kWaitMsMax));
  v1::PullBlocksResponse response;
  const absl::Duration timeout = absl::Milliseconds(request.wait_ms()) + link_.ControlTimeout({});
  const absl::Status status =
      link_.Call(&Stub::PullBlocks, request, timeout, {.idempotent = true}, &response);
  if (!status.ok()) return status;
  if (static_cast<size_t>(response.outcomes_size()) != keys.size()) {
    return absl::InternalError(absl::StrCat("the node answered ", response.outcomes_size(),
                                            " outcomes for ", keys.size(), " keys"));
  }
  PullAnswer answer;
  for (const int outcome : response.outcomes()) {
    answer.outcomes.push_back(static_cast<v1::PullOutcome>(outcome));
  }
  answer.pulled_bytes = response.pulled_bytes();
  answer.complete = response.complete();
  answer.detail = response.detail();
  return answer;
}

absl::StatusOr<v1::ExplainPromptResponse> CacheNodeClient::ExplainPrompt(
    const NamespaceHandle& name_space, const Prompt& prompt) {
  v1::ExplainPromptRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  *request.mutable_fields() = NamespaceToProto(name_space.fields());
  if (prompt.regions().empty()) {
    request.mutable_prompt()->set_keys(KeysToProto(prompt.keys()));
  } else {
    *request.mutable_prompt() = PromptToProto(prompt.regions(), prompt.extras());
  }
  v1::ExplainPromptResponse response;
  const absl::Status status =
      link_.Call(&Stub::ExplainPrompt, request, {}, {.idempotent = true}, &response);
  if (!status.ok()) return status;
  if (response.namespace_known() && response.blocks_total() != prompt.block_count()) {
    return absl::InternalError(absl::StrCat("the node counts ", response.blocks_total(),
                                            " full blocks in a prompt of ", prompt.block_count()));
  }
  if (response.blocks_present() > response.blocks_total()) {
    return absl::InternalError(absl::StrCat("the node holds ", response.blocks_present(),
                                            " blocks of ", response.blocks_total()));
  }
  return response;
}

std::unique_ptr<BlockWatcher> CacheNodeClient::WatchBlocks() {
  return std::make_unique<BlockWatcher>(link_.feed(), link_.options().metadata);
}

absl::StatusOr<v1::DescribeResponse> CacheNodeClient::Describe(bool with_shards) {
  v1::DescribeRequest request;
  request.set_shards(with_shards);
  v1::DescribeResponse response;
  const absl::Status status = link_.Call(&Stub::Describe, request, {}, {}, &response);
  if (!status.ok()) return status;
  return response;
}

}  // namespace cairn
