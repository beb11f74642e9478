#include "tests/cluster/random_caller.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/wire/limits.h"
#include "tests/cluster/checked_payload.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kPrompts = 64;
constexpr uint32_t kBlocksMax = 6;
constexpr size_t kOpenMax = 16;
// Some prompts live in a scope of their own, which is cleared now and then.
constexpr char kClearedSalt[] = "cleared";

using Code = absl::StatusCode;

// OK, or one of the codes that this call may end with.
absl::Status Allow(const absl::Status& status, std::initializer_list<Code> codes,
                   absl::string_view call) {
  if (status.ok() || absl::c_linear_search(codes, status.code())) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, " ended with ", status.ToString()));
}

std::string SaltOf(uint32_t number) { return number % 8 == 0 ? kClearedSalt : ""; }

size_t BlocksOf(uint32_t number) { return 1 + number % kBlocksMax; }

}  // namespace

RandomCaller::RandomCaller(CacheNodeClient* client, NamespaceHandle name_space, uint64_t seed)
    : client_(client), name_space_(std::move(name_space)), random_(seed) {}

uint32_t RandomCaller::Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

NumberedPrompt RandomCaller::PromptOf(uint32_t number) const {
  return NumberedPrompt(*client_, name_space_, number, BlocksOf(number), SaltOf(number));
}

absl::Status RandomCaller::Call() {
  struct Choice {
    uint32_t weight;
    absl::Status (RandomCaller::*call)();
  };
  static constexpr Choice kChoices[] = {
      {16, &RandomCaller::Probe},       {14, &RandomCaller::TakeLease},
      {14, &RandomCaller::ReadByLease}, {10, &RandomCaller::ReadByKey},
      {2, &RandomCaller::AskLease},     {3, &RandomCaller::RenewLease},
      {8, &RandomCaller::EndLease},     {8, &RandomCaller::Reserve},
      {10, &RandomCaller::WriteSlice},  {6, &RandomCaller::CommitSession},
      {2, &RandomCaller::AbortSession}, {8, &RandomCaller::PutWhole},
      {3, &RandomCaller::DeleteSome},   {1, &RandomCaller::ClearScope},
      {1, &RandomCaller::Describe},     {1, &RandomCaller::AskNonsense},
  };
  uint32_t total = 0;
  for (const Choice& choice : kChoices) total += choice.weight;
  uint32_t drawn = Below(total);
  for (const Choice& choice : kChoices) {
    if (drawn < choice.weight) return (this->*choice.call)();
    drawn -= choice.weight;
  }
  return absl::OkStatus();
}

absl::Status RandomCaller::Probe() {
  const NumberedPrompt prompt = PromptOf(Below(kPrompts));
  LookupOptions options;
  options.touch = Below(2) == 0;
  options.by_keys = Below(2) == 0;
  const absl::StatusOr<LookupAnswer> answer = client_->Lookup(name_space_, prompt.span(), options);
  if (!answer.ok()) return Allow(answer.status(), {}, "lookup");
  if (answer->prompts[0].blocks_present > prompt.keys().size()) {
    return absl::InternalError("more blocks are present than the prompt has");
  }
  return absl::OkStatus();
}

absl::Status RandomCaller::TakeLease() {
  const uint32_t number = Below(kPrompts);
  const NumberedPrompt prompt = PromptOf(number);
  LookupOptions options;
  options.lease_readers = 1 + Below(3);
  options.lease_ttl = kTtl;
  absl::StatusOr<LookupAnswer> answer = client_->Lookup(name_space_, prompt.span(), options);
  if (!answer.ok()) return Allow(answer.status(), {Code::kResourceExhausted}, "leasing lookup");
  if (!answer->lease) return absl::OkStatus();
  answer->lease->Release();
  if (leases_.size() == kOpenMax) leases_.erase(leases_.begin());
  leases_.push_back({answer->lease->id(), options.lease_readers, number});
  return absl::OkStatus();
}

absl::Status RandomCaller::CheckBytes(uint32_t number, const GetOptions& options) {
  const NumberedPrompt prompt = PromptOf(number);
  const CheckedRead read = GetAndCompare(*client_, name_space_, prompt.keys(), options);
  if (read.wrong > 0) {
    return absl::DataLossError(absl::StrCat(read.wrong, " wrong segments in prompt ", number,
                                            ", call ended with ", read.result.status.ToString()));
  }
  for (const FetchedBlock& block : read.result.blocks) blocks_read_ += block.good() ? 1 : 0;
  // With a lease: over, or it covers fewer blocks than were asked for.
  return Allow(read.result.status, {Code::kAborted, Code::kResourceExhausted}, "get");
}

absl::Status RandomCaller::ReadByLease() {
  if (leases_.empty()) return TakeLease();
  const OpenLease& lease = leases_[Below(static_cast<uint32_t>(leases_.size()))];
  GetOptions options;
  options.lease = lease.id;
  return CheckBytes(lease.prompt, options);
}

absl::Status RandomCaller::ReadByKey() { return CheckBytes(Below(kPrompts), {}); }

absl::Status RandomCaller::AskLease() {
  if (leases_.empty()) return TakeLease();
  const OpenLease& lease = leases_[Below(static_cast<uint32_t>(leases_.size()))];
  return Allow(client_->GetLease(lease.id).status(), {Code::kAborted}, "get lease");
}

absl::Status RandomCaller::RenewLease() {
  if (leases_.empty()) return TakeLease();
  const OpenLease& lease = leases_[Below(static_cast<uint32_t>(leases_.size()))];
  ReadLease share = client_->JoinLease(lease.id, Below(lease.readers), 1);
  const absl::Status status = share.Renew(kTtl).status();
  share.Release();
  return Allow(status, {Code::kAborted}, "renew lease");
}

absl::Status RandomCaller::EndLease() {
  if (leases_.empty()) return TakeLease();
  const uint32_t index = Below(static_cast<uint32_t>(leases_.size()));
  const OpenLease lease = leases_[index];
  ReadLease share = client_->JoinLease(lease.id, Below(lease.readers), 1);
  const uint32_t usable = Below(2);
  const absl::StatusOr<bool> complete = share.End({&usable, 1});
  share.Release();
  if (!complete.ok() || *complete) leases_.erase(leases_.begin() + index);
  return Allow(complete.status(), {Code::kAborted}, "end lease");
}

absl::Status RandomCaller::Reserve() {
  const NumberedPrompt prompt = PromptOf(Below(kPrompts));
  ReserveOptions options;
  options.token_ttl = kTtl;
  options.abort_on_destroy = false;
  absl::StatusOr<WriteSession> session =
      client_->Reserve(name_space_, prompt.prompt(), 0, prompt.keys().size(), options);
  if (!session.ok()) return Allow(session.status(), {Code::kResourceExhausted}, "reserve");
  if (!session->token()) return absl::OkStatus();
  if (sessions_.size() == kOpenMax) sessions_.erase(sessions_.begin());
  sessions_.push_back(*std::move(session));
  return absl::OkStatus();
}

absl::Status RandomCaller::WriteSlice() {
  if (sessions_.empty()) return Reserve();
  WriteSession& session = sessions_[Below(static_cast<uint32_t>(sessions_.size()))];
  const PartLayers part = {.group = 0, .slice = Below(4)};
  const absl::StatusOr<WriteResult> written =
      session.Write(session.reserved(), {&part, 1}, PayloadOf(name_space_, session.keys()));
  return Allow(written.status(), {Code::kAborted, Code::kResourceExhausted}, "write");
}

absl::Status RandomCaller::CommitSession() {
  if (sessions_.empty()) return Reserve();
  const uint32_t index = Below(static_cast<uint32_t>(sessions_.size()));
  const absl::StatusOr<CommitResult> commit = sessions_[index].Commit();
  if (commit.ok() && commit->complete) blocks_committed_ += commit->blocks_present;
  if (!commit.ok() || commit->complete) sessions_.erase(sessions_.begin() + index);
  return Allow(commit.status(), {Code::kAborted}, "commit");
}

absl::Status RandomCaller::AbortSession() {
  if (sessions_.empty()) return Reserve();
  const uint32_t index = Below(static_cast<uint32_t>(sessions_.size()));
  const absl::Status status = sessions_[index].Abort();
  sessions_.erase(sessions_.begin() + index);
  return Allow(status, {Code::kAborted}, "abort");
}

absl::Status RandomCaller::PutWhole() {
  const NumberedPrompt prompt = PromptOf(Below(kPrompts));
  const absl::StatusOr<PutResult> put = PutPrompt(*client_, name_space_, prompt.prompt());
  if (put.ok()) blocks_committed_ += put->blocks_written;
  // ABORTED: its scope was cleared, or a block deleted, under its token.
  return Allow(put.status(), {Code::kResourceExhausted, Code::kAborted}, "put");
}

absl::Status RandomCaller::DeleteSome() {
  const NumberedPrompt prompt = PromptOf(Below(kPrompts));
  return Allow(client_->Delete(name_space_.fingerprint(), prompt.keys()).status(), {}, "delete");
}

absl::Status RandomCaller::ClearScope() {
  return Allow(client_->ClearScope(name_space_.fingerprint(), ScopeOf(kClearedSalt)).status(), {},
               "clear scope");
}

absl::Status RandomCaller::Describe() {
  return Allow(client_->Describe(Below(2) == 0).status(), {}, "describe");
}

absl::Status RandomCaller::AskNonsense() {
  const NumberedPrompt prompt = PromptOf(Below(kPrompts));
  LookupOptions options;
  options.lease_readers = kReadersPerLeaseMax + 1 + Below(1000);
  const absl::Status status = client_->Lookup(name_space_, prompt.span(), options).status();
  if (status.code() == Code::kInvalidArgument) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("a lease of ", options.lease_readers, " readers: ", status.ToString()));
}

}  // namespace cairn::testing
