#include "client/cpp/lookup_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

struct RequestIdTag;
using RequestId = Bytes16<RequestIdTag>;
static_assert(kRequestIdBytes == kKeyBytes);

absl::Status CheckOptions(size_t prompts, const LookupOptions& options) {
  if (prompts < 1 || prompts > kPromptsPerLookupMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(prompts, " prompts; one lookup takes 1 to ", kPromptsPerLookupMax));
  }
  if (options.lease_readers > kReadersPerLeaseMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("lease_readers: ", options.lease_readers, "; at most ", kReadersPerLeaseMax));
  }
  if (options.lease_readers > 0 && options.reader >= options.lease_readers) {
    return absl::InvalidArgumentError(absl::StrCat("reader: ", options.reader, " of ",
                                                   options.lease_readers,
                                                   " readers, which are numbered from 0"));
  }
  if (options.wait > absl::Milliseconds(kWaitMsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("wait: ", absl::FormatDuration(options.wait),
                                                   "; at most ", kWaitMsMax, " ms"));
  }
  return absl::OkStatus();
}

v1::LookupRequest MakeRequest(const NamespaceHandle& name_space, absl::Span<const Prompt> prompts,
                              const LookupOptions& options) {
  v1::LookupRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  size_t tokens = 0;
  for (const Prompt& prompt : prompts) tokens += prompt.token_count();
  const bool by_keys = options.by_keys || tokens > kTokensPerCallMax;
  for (const Prompt& prompt : prompts) {
    if (by_keys || prompt.regions().empty()) {
      request.add_prompts()->set_keys(KeysToProto(prompt.keys()));
    } else {
      *request.add_prompts() = PromptToProto(prompt.regions(), prompt.extras());
    }
  }
  if (options.lease_readers > 0) {
    request.mutable_lease()->set_readers(options.lease_readers);
    request.mutable_lease()->set_ttl_ms(MillisecondsOf(options.lease_ttl, UINT32_MAX));
  }
  request.set_touch(options.touch);
  request.set_promote(options.promote);
  request.set_wait_ms(MillisecondsOf(options.wait, kWaitMsMax));
  return request;
}

absl::StatusOr<PromptAnswer> AnswerFromProto(const v1::PromptResult& result, const Prompt& prompt) {
  PromptAnswer answer{.blocks_total = result.blocks_total(),
                      .blocks_present = result.blocks_present(),
                      .tokens_present = result.tokens_present(),
                      .blocks_leased = result.blocks_leased(),
                      .runs = {}};
  if (answer.blocks_total != prompt.block_count() || answer.blocks_present > answer.blocks_total ||
      answer.blocks_leased > answer.blocks_total) {
    return absl::InternalError(absl::StrCat(
        "the node answered ", answer.blocks_present, " present and ", answer.blocks_leased,
        " leased of ", answer.blocks_total, " blocks for a prompt of ", prompt.block_count()));
  }
  for (const v1::BlockRun& run : result.runs()) {
    answer.runs.push_back({.count = run.count(),
                           .state = run.state(),
                           .pending = absl::Milliseconds(run.pending_ms())});
  }
  return answer;
}

// A node that does not know the namespace cannot count blocks; the client can.
PromptAnswer UnknownNamespaceAnswer(const Prompt& prompt) {
  PromptAnswer answer;
  answer.blocks_total = static_cast<uint32_t>(prompt.block_count());
  if (answer.blocks_total > 0) {
    answer.runs.push_back(
        {.count = answer.blocks_total, .state = v1::BLOCK_STATE_NAMESPACE_UNKNOWN});
  }
  return answer;
}

absl::StatusOr<LookupAnswer> AnswerFromProto(NodeLink* link, const v1::LookupResponse& response,
                                             absl::Span<const Prompt> prompts,
                                             const LookupOptions& options) {
  LookupAnswer answer;
  answer.namespace_known = response.namespace_known();
  // First of all, so that whatever follows gives it back.
  if (options.lease_readers > 0 && !response.lease().empty()) {
    const std::optional<LeaseId> id = LeaseId::FromBytes(response.lease());
    if (!id) {
      return absl::InternalError(
          absl::StrCat("the node answered a lease of ", response.lease().size(), " bytes"));
    }
    answer.lease.emplace(link, *id, options.reader, prompts.size(),
                         absl::Milliseconds(response.lease_ttl_ms()));
  }
  if (static_cast<size_t>(response.results_size()) != prompts.size()) {
    return absl::InternalError(absl::StrCat("the node answered ", response.results_size(),
                                            " results for ", prompts.size(), " prompts"));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (!answer.namespace_known) {
      answer.prompts.push_back(UnknownNamespaceAnswer(prompts[i]));
      continue;
    }
    absl::StatusOr<PromptAnswer> one =
        AnswerFromProto(response.results(static_cast<int>(i)), prompts[i]);
    if (!one.ok()) return one.status();
    answer.prompts.push_back(*std::move(one));
  }
  return answer;
}

}  // namespace

absl::StatusOr<LookupAnswer> LookupPrompts(NodeLink* link, const NamespaceHandle& name_space,
                                           absl::Span<const Prompt> prompts,
                                           const LookupOptions& options) {
  if (absl::Status status = CheckOptions(prompts.size(), options); !status.ok()) return status;
  v1::LookupRequest request = MakeRequest(name_space, prompts, options);
  v1::LookupResponse response;
  const absl::Status status = link->runner().Run(
      link->ControlTimeout(options.timeout) + options.wait, {},
      [&](const CallRunner::Attempt& attempt) {
        // Without it, a retry of a lookup that was answered would lease twice.
        if (options.lease_readers > 0 && attempt.new_request_id) {
          request.set_request_id(std::string(link->random()->New<RequestId>().view()));
        }
        return link->CallOnce(&v1::CacheNode::Stub::Lookup, request, attempt.remaining, &response);
      });
  if (!status.ok()) return status;
  return AnswerFromProto(link, response, prompts, options);
}

}  // namespace cairn
