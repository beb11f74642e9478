#include "client/cpp/decode/decode_client.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "common/base/check.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/decode_limits.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

using Stub = v1::Decode::Stub;

struct RequestIdTag;
using RequestId = Bytes16<RequestIdTag>;

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  return grpc::CreateCustomChannel(
      options.target,
      options.credentials ? options.credentials : grpc::InsecureChannelCredentials(),
      MakeChannelArguments(options.channel));
}

v1::Prompt MessageOf(const Prompt& prompt) {
  if (!prompt.regions().empty() && prompt.token_count() <= kTokensPerCallMax) {
    return PromptToProto(prompt.regions(), prompt.extras());
  }
  v1::Prompt message;
  message.set_keys(KeysToProto(prompt.keys()));
  return message;
}

absl::Status CheckOptions(const OpenSequenceOptions& options) {
  if (options.wait > absl::Milliseconds(kWaitMsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("wait: ", absl::FormatDuration(options.wait),
                                                   "; at most ", kWaitMsMax, " ms"));
  }
  if (options.idle > absl::Milliseconds(kSequenceIdleMsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("idle: ", absl::FormatDuration(options.idle),
                                                   "; at most ", kSequenceIdleMsMax, " ms"));
  }
  return absl::OkStatus();
}

// What was opened must begin where it was asked to, at blocks' edges, with the room asked for.
absl::Status CheckOpened(const v1::OpenSequenceResponse& response, uint32_t block_tokens,
                         const OpenSequenceOptions& options) {
  const uint64_t first = uint64_t{options.first_block} * block_tokens;
  const uint64_t covered = response.covered_tokens();
  const uint64_t most = uint64_t{options.blocks_max} * block_tokens;
  if (response.first_token() == first && covered >= first &&
      (covered - first) % block_tokens == 0 && (most == 0 || covered - first <= most) &&
      response.reserved_tokens() >= options.reserve_tokens) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("the node opened a sequence of tokens ", response.first_token(), " to ", covered,
                   " with ", response.reserved_tokens(), " reserved, where one from ", first,
                   " on with ", options.reserve_tokens, " was asked for"));
}

}  // namespace

DecodeClient::DecodeClient(const ClientOptions& options, const ClientParts& parts)
    : options_(options),
      clock_(parts.clock),
      random_(parts.random),
      runner_(options.retry, parts.clock, parts.random, parts.wait),
      calls_(v1::Decode::NewStub(MakeChannel(options))),
      streams_(MakeChannel(options)) {
  CAIRN_CHECK_OK(ValidateClientOptions(options));
}

template <typename Request, typename Response>
absl::Status DecodeClient::CallOnce(Method<Request, Response> method, const Request& request,
                                    absl::Duration remaining, Response* response) const {
  grpc::ClientContext context;
  if (options_.metadata != nullptr) options_.metadata->AddTo(&context);
  SetDeadline(remaining, &context);
  response->Clear();
  return FromGrpcStatus((calls_.get()->*method)(&context, request, response));
}

template <typename Request, typename Response>
absl::Status DecodeClient::Call(Method<Request, Response> method, const Request& request,
                                absl::Duration timeout, Response* response) const {
  return runner_.Run(timeout, {.idempotent = true}, [&](const CallRunner::Attempt& attempt) {
    return CallOnce(method, request, attempt.remaining, response);
  });
}

template <typename Request, typename Response>
absl::Status DecodeClient::CallWithin(Method<Request, Response> method, const Request& request,
                                      absl::Duration once, Response* response) const {
  return once > absl::ZeroDuration() ? CallOnce(method, request, once, response)
                                     : Call(method, request, options_.control_timeout, response);
}

template <typename Request, typename Response>
absl::Status DecodeClient::CallById(Method<Request, Response> method, Request* request,
                                    absl::Duration timeout, const RetryRules& rules,
                                    Response* response) const {
  return runner_.Run(timeout, rules, [&](const CallRunner::Attempt& attempt) {
    if (attempt.new_request_id) {
      request->set_request_id(std::string(random_->New<RequestId>().view()));
    }
    return CallOnce(method, *request, attempt.remaining, response);
  });
}

absl::StatusOr<OpenedSequence> DecodeClient::OpenSequence(const NamespaceHandle& name_space,
                                                          const Prompt& prompt,
                                                          const OpenSequenceOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  v1::OpenSequenceRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  *request.mutable_prompt() = MessageOf(prompt);
  request.set_first_block(options.first_block);
  request.set_blocks_max(options.blocks_max);
  request.set_reserve_tokens(options.reserve_tokens);
  request.set_wait_ms(MillisecondsOf(options.wait, kWaitMsMax));
  request.set_idle_ms(MillisecondsOf(options.idle, kSequenceIdleMsMax));
  v1::OpenSequenceResponse response;
  const absl::Duration timeout = options_.control_timeout + options.wait;
  absl::Status status =
      CallById(&Stub::OpenSequence, &request, timeout,
               {.idempotent = true, .wait_when_exhausted = options.wait_when_exhausted}, &response);
  if (!status.ok()) return status;
  const absl::StatusOr<SequenceId> id = IdFromProto<SequenceId>(response.sequence(), "sequence");
  if (!id.ok()) return absl::InternalError(absl::StrCat("the node: ", id.status().message()));
  status = CheckOpened(response, name_space.block_tokens(), options);
  if (!status.ok()) {
    (void)CloseSequences({&*id, 1});
    return status;
  }
  return OpenedSequence{
      *id, {response.first_token(), response.covered_tokens()}, response.reserved_tokens()};
}

absl::StatusOr<ForkedSequences> DecodeClient::ForkSequence(const SequenceId& sequence,
                                                           uint32_t count,
                                                           uint64_t reserve_tokens) {
  if (count < 1 || count > kForksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("count: ", count, "; one call makes 1 to ", kForksMax, " forks"));
  }
  v1::ForkSequenceRequest request;
  request.set_sequence(std::string(sequence.view()));
  request.set_count(count);
  request.set_reserve_tokens(reserve_tokens);
  v1::ForkSequenceResponse response;
  const absl::Status status = CallById(&Stub::ForkSequence, &request, options_.control_timeout,
                                       {.idempotent = true}, &response);
  if (!status.ok()) return status;
  if (response.sequences().size() != count * kKeyBytes) {
    return absl::InternalError(absl::StrCat("the node answered ", response.sequences().size(),
                                            " bytes for ", count, " forks"));
  }
  ForkedSequences forked;
  forked.length_tokens = response.length_tokens();
  for (uint32_t i = 0; i < count; ++i) {
    forked.ids.push_back(*SequenceId::FromBytes(
        absl::string_view(response.sequences()).substr(i * kKeyBytes, kKeyBytes)));
  }
  return forked;
}

absl::StatusOr<uint64_t> DecodeClient::TruncateSequence(const SequenceId& sequence,
                                                        uint64_t length_tokens) {
  v1::TruncateSequenceRequest request;
  request.set_sequence(std::string(sequence.view()));
  request.set_length_tokens(length_tokens);
  v1::TruncateSequenceResponse response;
  const absl::Status status =
      Call(&Stub::TruncateSequence, request, options_.control_timeout, &response);
  if (!status.ok()) return status;
  return response.length_tokens();
}

absl::StatusOr<uint64_t> DecodeClient::ReleaseWindow(const SequenceId& sequence,
                                                     uint64_t before_token, uint64_t sink_tokens) {
  v1::ReleaseWindowRequest request;
  request.set_sequence(std::string(sequence.view()));
  request.set_before_token(before_token);
  request.set_sink_tokens(sink_tokens);
  v1::ReleaseWindowResponse response;
  const absl::Status status =
      Call(&Stub::ReleaseWindow, request, options_.control_timeout, &response);
  if (!status.ok()) return status;
  return response.blocks();
}

absl::StatusOr<v1::GetSequenceResponse> DecodeClient::GetSequence(const SequenceId& sequence,
                                                                  absl::Duration once) {
  v1::GetSequenceRequest request;
  request.set_sequence(std::string(sequence.view()));
  v1::GetSequenceResponse response;
  const absl::Status status = CallWithin(&Stub::GetSequence, request, once, &response);
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<uint64_t> DecodeClient::CloseSequences(absl::Span<const SequenceId> sequences,
                                                      absl::Duration once) {
  uint64_t closed = 0;
  for (size_t begin = 0; begin < sequences.size(); begin += kSequencesPerCloseMax) {
    v1::CloseSequencesRequest request;
    for (const SequenceId& id : sequences.subspan(begin, kSequencesPerCloseMax)) {
      request.mutable_sequences()->append(id.view().data(), id.view().size());
    }
    v1::CloseSequencesResponse response;
    const absl::Status status = CallWithin(&Stub::CloseSequences, request, once, &response);
    if (!status.ok()) return status;
    closed += response.closed();
  }
  return closed;
}

absl::StatusOr<std::vector<v1::AttendResult>> DecodeClient::Attend(const v1::AttendRequest& request,
                                                                   absl::Duration timeout) {
  v1::AttendResponse response;
  const absl::Status status =
      Call(&Stub::Attend, request,
           timeout > absl::ZeroDuration() ? timeout : options_.control_timeout, &response);
  if (!status.ok()) return status;
  if (response.results_size() != request.items_size()) {
    return absl::InternalError(absl::StrCat("the node answered ", response.results_size(),
                                            " results for ", request.items_size(), " items"));
  }
  return std::vector<v1::AttendResult>(std::make_move_iterator(response.mutable_results()->begin()),
                                       std::make_move_iterator(response.mutable_results()->end()));
}

std::unique_ptr<DecodeStream> DecodeClient::OpenStream(
    CallQueue* queue, const Fingerprint& fingerprint,
    absl::Span<const v1::AttentionParameters> parameters, const DecodeStreamOptions& options) {
  return std::make_unique<DecodeStream>(queue, &streams_, options_.metadata, clock_, options,
                                        fingerprint, parameters);
}

}  // namespace cairn
