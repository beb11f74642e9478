#include "tests/cluster/engine/fake_engine.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/hex.h"

namespace cairn::testing {
namespace {

// A rank that died is waited for so long.
constexpr absl::Duration kShareTtl = absl::Seconds(3);
constexpr absl::Duration kReadersWait = absl::Seconds(1);
// Between turns with nothing to hear.
constexpr int kPauseMs = 1;

}  // namespace

FakeEngine::FakeEngine(const std::string& node_address, const std::string& folder)
    : node_address_(node_address),
      folder_(folder),
      client_(node_address),
      name_space_(RegisterEngine(*client_)),
      transfers_(&*client_, &clock_, {.threads = 2}),
      ranks_(kEngineRanks) {
  request_.phase = Phase::kOver;
  for (uint32_t rank = 0; rank < kEngineRanks; ++rank) StartRank(rank);
}

void FakeEngine::StartRank(uint32_t rank) {
  ChildProcess::Options options;
  options.command = {absl::StrCat(CAIRN_BIN_DIR, "/cairn_engine_rank"),
                     absl::StrCat("--node=", node_address_), absl::StrCat("--rank=", rank)};
  options.log_path = absl::StrCat(folder_, "/rank", rank, "-", ++processes_);
  options.talk = true;
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(std::move(options));
  CAIRN_CHECK_OK(process.status());
  ranks_[rank] = {.process = *std::move(process)};
}

void FakeEngine::Begin(uint32_t prompt_number, size_t blocks) {
  CAIRN_CHECK(request_.phase == Phase::kOver);
  request_ = Request();
  session_.reset();
  lease_.reset();
  lease_over_ = false;
  prompt_number_ = prompt_number;
  prompt_ = std::make_unique<EnginePrompt>(*client_, name_space_, prompt_number, blocks);
  LookupTransfer lookup{name_space_, {prompt_->prompt()}};
  lookup.options.lease_readers = kEngineRanks;
  lookup.options.lease_ttl = kShareTtl;
  CAIRN_CHECK_OK(transfers_.Submit(std::move(lookup)).status());
}

bool FakeEngine::TurnUntil(absl::FunctionRef<bool()> condition, absl::Duration bound) {
  const absl::Time deadline = absl::Now() + bound;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    Turn();
    pollfd waited{.fd = transfers_.event_fd(), .events = POLLIN, .revents = 0};
    poll(&waited, 1, kPauseMs);
  }
  return true;
}

void FakeEngine::Turn() {
  const absl::Time began = absl::Now();
  HearTransfers();
  for (uint32_t rank = 0; rank < kEngineRanks; ++rank) HearRank(rank);
  ++turns_;
  longest_turn_ = std::max(longest_turn_, absl::Now() - began);
}

void FakeEngine::Hold(uint32_t rank) { CAIRN_CHECK_OK(ranks_[rank].process->WriteLine("hold")); }

void FakeEngine::TellRanks(const std::string& line) {
  for (Rank& rank : ranks_) rank.busy = rank.process->WriteLine(line).ok();
}

void FakeEngine::HearRank(uint32_t rank) {
  for (;;) {
    const absl::StatusOr<std::string> line = ranks_[rank].process->ReadLine(absl::ZeroDuration());
    if (line.ok()) {
      Heard(rank, *line);
    } else if (line.status().code() == absl::StatusCode::kDeadlineExceeded) {
      return;
    } else {
      return LostRank(rank);
    }
  }
}

void FakeEngine::Heard(uint32_t index, const std::string& line) {
  Rank& rank = ranks_[index];
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words[0] == "ready") rank.ready = true;
  if (words[0] == "holding") rank.holding = true;
  if (words[0] == "loaded") {
    uint64_t usable = 0;
    uint64_t wrong = 0;
    CAIRN_CHECK(absl::SimpleAtoi(words[1], &usable) && absl::SimpleAtoi(words[2], &wrong));
    request_.usable[index] = usable;
    request_.wrong += wrong;
    rank.busy = false;
    GoOnWhenLoaded();
  }
  if (words[0] == "stored") {
    rank.busy = false;
    if (words[1] == "1") request_.stored = true;
    if (request_.phase == Phase::kStoring && !AnyBusy()) request_.phase = Phase::kOver;
  }
}

// Its share of the lease ends by time, and so does the token; what is left of the store is not
// waited for.
void FakeEngine::LostRank(uint32_t rank) {
  StartRank(rank);
  if (request_.phase == Phase::kStoring) request_.phase = Phase::kOver;
  GoOnWhenLoaded();
}

bool FakeEngine::AnyBusy() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.busy; });
}

// The lease can be over before its last reader's line has come.
void FakeEngine::GoOnWhenLoaded() {
  if (request_.phase == Phase::kLoading && lease_over_ && !AnyBusy()) ReserveRest();
}

void FakeEngine::HearTransfers() {
  for (TransferEvent& event : transfers_.Poll(64)) {
    if (!event.result.has_value()) continue;
    if (auto* lookup = std::get_if<absl::StatusOr<LookupAnswer>>(&*event.result)) {
      HeardLookup(std::move(*lookup));
    } else if (auto* state = std::get_if<absl::StatusOr<LeaseState>>(&*event.result)) {
      HeardLease(*state);
    } else {
      HeardReserve(std::move(std::get<absl::StatusOr<WriteSession>>(*event.result)));
    }
  }
}

void FakeEngine::HeardLookup(absl::StatusOr<LookupAnswer> answer) {
  if (!answer.ok() || !answer->lease.has_value()) return ReserveRest();
  lease_ = answer->lease->id();
  answer->lease->Release();  // The ranks have the shares.
  request_.phase = Phase::kLoading;
  TellRanks(absl::StrCat("load ", ToHex(lease_->view()), " ", prompt_number_, " ",
                         answer->prompts[0].blocks_leased));
  WaitForReaders();
}

void FakeEngine::WaitForReaders() {
  CAIRN_CHECK_OK(transfers_.Submit(LeaseTransfer{*lease_, kReadersWait}).status());
}

void FakeEngine::HeardLease(const absl::StatusOr<LeaseState>& state) {
  if (state.ok() && !state->complete) return WaitForReaders();
  request_.hit_blocks = state.ok() ? state->usable_blocks[0] : 0;
  lease_over_ = true;
  GoOnWhenLoaded();
}

void FakeEngine::ReserveRest() {
  const size_t blocks = prompt_->keys().size();
  if (request_.hit_blocks == blocks) {
    request_.phase = Phase::kOver;
    request_.stored = true;
    return;
  }
  request_.phase = Phase::kReserving;
  ReserveTransfer reserve{name_space_, prompt_->prompt(), request_.hit_blocks,
                          blocks - request_.hit_blocks};
  reserve.options.token_ttl = kShareTtl;
  reserve.options.abort_on_destroy = false;
  CAIRN_CHECK_OK(transfers_.Submit(std::move(reserve)).status());
}

void FakeEngine::HeardReserve(absl::StatusOr<WriteSession> session) {
  if (!session.ok() || session->reserved().size() + request_.hit_blocks != prompt_->keys().size()) {
    request_.phase = Phase::kOver;  // There, or another's to write.
    return;
  }
  session_.emplace(*std::move(session));
  request_.phase = Phase::kStoring;
  TellRanks(absl::StrCat("store ", ToHex(session_->token()->view()), " ", prompt_number_, " ",
                         prompt_->keys().size(), " ", request_.hit_blocks));
}

}  // namespace cairn::testing
