#include "client/cpp/reserve_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "common/base/check.h"
#include "common/rpc/caller_identity.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/retry_status.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

struct RequestIdTag;
using RequestId = Bytes16<RequestIdTag>;

// Index of the region that holds all of [first, first + blocks).
absl::StatusOr<size_t> RegionOf(const Prompt& prompt, size_t first, size_t blocks) {
  if (blocks < 1 || blocks > kBlocksPerReserveMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(blocks, " blocks; one reserve takes 1 to ", kBlocksPerReserveMax));
  }
  for (size_t region = 0; region < prompt.regions().size(); ++region) {
    const size_t begin = prompt.FirstBlock(region);
    const size_t end = prompt.FirstBlock(region + 1);
    if (first >= begin && first < end && blocks <= end - first) return region;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "blocks ", first, " to ", first + blocks, " are not within one region of a prompt", " of ",
      prompt.block_count(), " blocks in ", prompt.regions().size(), " regions"));
}

void AddTokens(const NamespaceHandle& name_space, const Region& region, size_t first, size_t blocks,
               v1::ReserveRequest* request) {
  const size_t block_tokens = name_space.block_tokens();
  if (!region.tokens.empty()) {
    const auto tokens = region.tokens.subspan(first * block_tokens, blocks * block_tokens);
    request->mutable_tokens()->Add(tokens.begin(), tokens.end());
  }
  if (!region.external_ids.empty()) {
    const auto ids = region.external_ids.subspan(first, blocks);
    request->mutable_external_ids()->Add(ids.begin(), ids.end());
  }
}

void AddRetention(const KeepWish& keep, v1::ReserveRequest* request) {
  // Rounded up: zero is as long as may be.
  const auto milliseconds = [](absl::Duration duration) {
    const absl::Duration whole = absl::Ceil(duration, absl::Milliseconds(1));
    return static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Milliseconds(whole)));
  };
  v1::Retention retention;
  if (keep.priority.has_value()) retention.set_priority(*keep.priority);
  retention.set_priority_ms(milliseconds(keep.priority_for));
  retention.set_ttl_ms(milliseconds(keep.ttl));
  retention.set_pin_ms(milliseconds(keep.pin_for));
  if (retention.ByteSizeLong() > 0) *request->mutable_retention() = std::move(retention);
}

absl::StatusOr<v1::ReserveRequest> MakeRequest(const NamespaceHandle& name_space,
                                               const Prompt& prompt, size_t first, size_t blocks,
                                               const ReserveOptions& options) {
  const absl::StatusOr<size_t> region = RegionOf(prompt, first, blocks);
  if (!region.ok()) return region.status();
  const Region& what = prompt.regions()[*region];
  const size_t begin = prompt.FirstBlock(*region);
  v1::ReserveRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  *request.mutable_scope() = ScopeToProto(what.scope);
  const std::vector<BlockKey>& keys = prompt.keys();
  if (*region > 0) request.set_region_parent_key(std::string(keys[begin - 1].view()));
  if (first > begin) request.set_parent_key(std::string(keys[first - 1].view()));
  request.set_keys(KeysToProto(absl::MakeConstSpan(keys).subspan(first, blocks)));
  AddTokens(name_space, what, first - begin, blocks, &request);
  if (static_cast<size_t>(request.tokens_size()) > kTokensPerReserveMax) {
    return absl::InvalidArgumentError(absl::StrCat(request.tokens_size(),
                                                   " tokens; one reserve takes at most ",
                                                   kTokensPerReserveMax, ": ask for fewer blocks"));
  }
  ExtrasByBlock extras;
  for (const auto& [block, items] : prompt.extras()) {
    if (block >= first && block < first + blocks) {
      extras[static_cast<uint32_t>(block - first)] = items;
    }
  }
  ExtrasToProto(extras, request.mutable_extras());
  request.set_ttl_ms(MillisecondsOf(options.token_ttl, UINT32_MAX));
  AddRetention(options.keep, &request);
  return request;
}

size_t BlocksPerReserve(const NamespaceHandle& name_space) {
  const size_t by_tokens = kTokensPerReserveMax / std::max(1u, name_space.block_tokens());
  return std::clamp<size_t>(by_tokens, 1, kBlocksPerReserveMax);
}

bool Refused(v1::ReserveOutcome outcome) {
  return outcome == v1::RESERVE_OUTCOME_NO_SPACE || outcome == v1::RESERVE_OUTCOME_QUOTA;
}

// An answer without a token whose end is a lack of space, as the status that retries understand.
absl::Status ExhaustedOrOk(const v1::ReserveResponse& response) {
  if (!response.token().empty()) return absl::OkStatus();
  for (const v1::ReserveAnswer& answer : response.answers()) {
    if (!Refused(answer.outcome())) continue;
    return WithRetryAfter(absl::ResourceExhaustedError(v1::ReserveOutcome_Name(answer.outcome())),
                          absl::Milliseconds(response.retry_after_ms()));
  }
  return absl::OkStatus();
}

absl::StatusOr<WriteSession> SessionOf(NodeLink* link, const NamespaceHandle& name_space,
                                       std::vector<BlockKey> keys,
                                       const v1::ReserveResponse& response,
                                       const ReserveOptions& options) {
  WriteSession::Reservation reservation;
  reservation.answers.assign(response.answers().begin(), response.answers().end());
  reservation.retry_after = absl::Milliseconds(response.retry_after_ms());
  reservation.token_ttl = absl::Milliseconds(response.token_ttl_ms());
  reservation.abort_on_destroy = options.abort_on_destroy;
  reservation.token = TokenId::FromBytes(response.token());
  const bool any_reserved = std::any_of(reservation.answers.begin(), reservation.answers.end(),
                                        [](const v1::ReserveAnswer& answer) {
                                          return answer.outcome() == v1::RESERVE_OUTCOME_RESERVED;
                                        });
  if (reservation.answers.size() != keys.size() || any_reserved != reservation.token.has_value()) {
    return absl::InternalError(absl::StrCat("the node answered ", reservation.answers.size(),
                                            " outcomes and a token of ", response.token().size(),
                                            " bytes for ", keys.size(), " blocks"));
  }
  reservation.keys = std::move(keys);
  return WriteSession(link, name_space, std::move(reservation));
}

}  // namespace

size_t BlocksOfOneReserve(const NamespaceHandle& name_space, const Prompt& prompt,
                          size_t first_block, size_t blocks_max) {
  CAIRN_CHECK(first_block < prompt.block_count() && !prompt.regions().empty());
  size_t region = 0;
  while (prompt.FirstBlock(region + 1) <= first_block) ++region;
  const size_t left = prompt.FirstBlock(region + 1) - first_block;
  const size_t most = BlocksPerReserve(name_space);
  if (prompt.regions()[region].scope.tenant == kPublicTenant) {
    return std::min(left, most - (first_block - prompt.FirstBlock(region)) % most);
  }
  return std::min({left, most, std::max<size_t>(1, blocks_max)});
}

std::vector<BlockKey> PublicEndsOf(const NamespaceHandle& name_space, const Prompt& prompt) {
  std::vector<BlockKey> ends;
  for (size_t region = 0; region < prompt.regions().size(); ++region) {
    if (prompt.regions()[region].scope.tenant != kPublicTenant) continue;
    size_t next = prompt.FirstBlock(region);
    while (next < prompt.FirstBlock(region + 1)) {
      next += BlocksOfOneReserve(name_space, prompt, next, /*blocks_max=*/1);
      ends.push_back(prompt.keys()[next - 1]);
    }
  }
  return ends;
}

absl::StatusOr<WriteSession> ReserveBlocks(NodeLink* link, const NamespaceHandle& name_space,
                                           const Prompt& prompt, size_t first_block, size_t blocks,
                                           const ReserveOptions& options) {
  absl::StatusOr<v1::ReserveRequest> request =
      MakeRequest(name_space, prompt, first_block, blocks, options);
  if (!request.ok()) return request.status();
  v1::ReserveResponse response;
  bool answered = false;
  const RetryRules rules{.idempotent = true, .wait_when_exhausted = options.wait_when_exhausted};
  const absl::Duration timeout = options.wait_when_exhausted
                                     ? link->DataTimeout(options.timeout)
                                     : link->ControlTimeout(options.timeout);
  const absl::Status status =
      link->runner().Run(timeout, rules, [&](const CallRunner::Attempt& attempt) {
        if (attempt.new_request_id) {
          request->set_request_id(std::string(link->random()->New<RequestId>().view()));
        }
        const absl::Status called =
            link->CallOnce(&v1::CacheNode::Stub::Reserve, *request, attempt.remaining, &response);
        answered = called.ok();
        return called.ok() ? ExhaustedOrOk(response) : called;
      });
  if (!status.ok() && !answered) return status;
  const std::vector<BlockKey>& keys = prompt.keys();
  const auto begin = keys.begin() + static_cast<ptrdiff_t>(first_block);
  return SessionOf(link, name_space, {begin, begin + static_cast<ptrdiff_t>(blocks)}, response,
                   options);
}

}  // namespace cairn
