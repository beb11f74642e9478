#include "tests/sim/worker/suffix_store.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cairn/v1/cache_node.pb.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/namespace_conversion.h"
#include "common/rpc/prompt_conversion.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kReserveTimeout = absl::Seconds(2);
constexpr absl::Duration kAbortTimeout = absl::Seconds(1);
constexpr uint64_t kBlocksPerReserveMax = 5;
constexpr uint32_t kOptionalPartChance = 5000;

}  // namespace

void SuffixStore::Reserve(size_t begin, size_t end, bool register_first, Done done) {
  begin_ = begin;
  first_reserved_ = end_ = end;
  done_ = std::move(done);
  if (register_first) return Register([this] { Ask(); });
  Ask();
}

void SuffixStore::Register(std::function<void()> then) {
  registered_ = true;
  v1::RegisterNamespaceRequest request;
  request.set_name(context_->prompt->name_space().name());
  *request.mutable_fields() = NamespaceToProto(context_->prompt->name_space().fields());
  call_ = std::make_unique<UnaryCall>(
      context_->side, node_, Method::kRegisterNamespace, request.SerializeAsString(),
      kReserveTimeout, [this, then = std::move(then)](const absl::StatusOr<std::string>& answer) {
        if (!answer.ok()) return End(answer.status());
        then();
      });
}

void SuffixStore::Ask() {
  const Prompt& prompt = context_->prompt->prompt();
  size_t region = 0;
  while (prompt.FirstBlock(region + 1) <= begin_) ++region;
  const size_t count = std::min({end_ - begin_, prompt.FirstBlock(region + 1) - begin_,
                                 size_t{context_->side.dice->Between(1, kBlocksPerReserveMax)}});
  const SimRegion& what = context_->prompt->regions()[region];
  const size_t first = prompt.FirstBlock(region);
  const size_t block_tokens = context_->prompt->name_space().block_tokens();
  v1::ReserveRequest request;
  request.set_fingerprint(std::string(context_->prompt->name_space().fingerprint().view()));
  *request.mutable_scope() = ScopeToProto(what.scope);
  if (region > 0) request.set_region_parent_key(std::string(prompt.keys()[first - 1].view()));
  if (begin_ > first) request.set_parent_key(std::string(prompt.keys()[begin_ - 1].view()));
  request.set_keys(KeysToProto(absl::MakeConstSpan(prompt.keys()).subspan(begin_, count)));
  const auto tokens = absl::MakeConstSpan(what.tokens)
                          .subspan((begin_ - first) * block_tokens, count * block_tokens);
  request.mutable_tokens()->Add(tokens.begin(), tokens.end());
  request.set_request_id(context_->NewRequestId());
  call_ = std::make_unique<UnaryCall>(
      context_->side, node_, Method::kReserve, request.SerializeAsString(), kReserveTimeout,
      [this, begin = begin_, count](const absl::StatusOr<std::string>& answer) {
        TakeAnswer(begin, count, answer);
      });
}

void SuffixStore::TakeAnswer(size_t begin, size_t count,
                             const absl::StatusOr<std::string>& answer) {
  // A node that started anew knows no namespace.
  if (absl::IsFailedPrecondition(answer.status()) && !registered_) {
    return Register([this] { Ask(); });
  }
  if (!answer.ok()) return End(answer.status());
  v1::ReserveResponse response;
  CAIRN_CHECK(response.ParseFromString(*answer));
  CAIRN_CHECK(static_cast<size_t>(response.answers_size()) == count);
  Reserved reserved;
  bool stopped = false;
  for (size_t i = 0; i < count && !stopped; ++i) {
    const v1::ReserveOutcome outcome = response.answers(static_cast<int>(i)).outcome();
    if (outcome == v1::RESERVE_OUTCOME_RESERVED) {
      reserved.blocks.emplace_back(static_cast<uint32_t>(i),
                                   context_->prompt->prompt().keys()[begin + i]);
      first_reserved_ = std::min(first_reserved_, begin + i);
    } else if (outcome != v1::RESERVE_OUTCOME_PRESENT &&
               outcome != v1::RESERVE_OUTCOME_IN_PROGRESS) {
      stopped = true;
      first_reserved_ = std::min(first_reserved_, begin + i);
    }
  }
  if (!response.token().empty()) {
    reserved.token = *TokenId::FromBytes(response.token());
    reserved_.push_back(std::move(reserved));
  }
  begin_ = begin + count;
  if (stopped || begin_ == end_) return End(absl::OkStatus());
  Ask();
}

void SuffixStore::Write(Done done) {
  done_ = std::move(done);
  next_to_write_ = 0;
  WriteNext();
}

// Those of the rank's slices; the optional ones sometimes.
std::vector<PartLayers> SuffixStore::PartsToWrite(uint32_t rank) const {
  std::vector<PartLayers> parts;
  for (const PayloadMap::Part& part : context_->prompt->name_space().payload_map().parts()) {
    if (part.slice % context_->ranks != rank) continue;
    if (!part.required && !context_->side.dice->Chance(kOptionalPartChance)) continue;
    parts.push_back({part.group, part.slice, 0, 0});
  }
  return parts;
}

void SuffixStore::WriteNext() {
  if (next_to_write_ == reserved_.size() || !write_status_.ok()) {
    context_->side.world->scheduler.After(absl::ZeroDuration(), context_->side.host,
                                          alive_.Guard([this] { End(write_status_); }));
    return;
  }
  const Reserved& reserved = reserved_[next_to_write_++];
  ranks_left_ = context_->ranks;
  for (uint32_t rank = 0; rank < context_->ranks; ++rank) {
    writes_.push_back(std::make_unique<RankWrite>(context_, node_, reserved.token, reserved.blocks,
                                                  PartsToWrite(rank),
                                                  [this](const absl::Status& status) {
                                                    write_status_.Update(status);
                                                    if (--ranks_left_ == 0) WriteNext();
                                                  }));
  }
}

void SuffixStore::Abort() {
  for (const Reserved& reserved : reserved_) {
    v1::AbortRequest request;
    request.set_token(std::string(reserved.token.view()));
    aborts_.push_back(std::make_unique<UnaryCall>(context_->side, node_, Method::kAbort,
                                                  request.SerializeAsString(), kAbortTimeout,
                                                  [](const absl::StatusOr<std::string>&) {}));
  }
}

void SuffixStore::End(const absl::Status& status) {
  const absl::Status how = status;
  const Done done = std::move(done_);
  done(how);
}

}  // namespace cairn::sim
