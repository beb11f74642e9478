#include "cache_node/pull/peer_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/retention.h"
#include "client/cpp/call_runner.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/status_mapping.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/message_codec.h"

namespace cairn::node {
namespace {

constexpr char kGetMethod[] = "/cairn.v1.CacheNode/Get";

absl::Status Silent(absl::Duration duration) {
  return absl::DeadlineExceededError(
      absl::StrCat("the peer has sent nothing for ", absl::FormatDuration(duration)));
}

absl::Status Stopped() { return absl::CancelledError("this node stops"); }

absl::Status Broken(size_t record, absl::string_view what) {
  return absl::InternalError(absl::StrCat("the peer's record ", record, " of a block ", what));
}

absl::StatusOr<BlockRecord> RecordFromProto(const v1::BlockRecord& message, size_t index,
                                            size_t scopes) {
  BlockRecord record;
  record.state = static_cast<BlockState>(message.state());
  if (message.state() != v1::BLOCK_STATE_HOST) {
    // Whatever else it says: there is nothing to fetch.
    const bool later = message.state() == v1::BLOCK_STATE_DISK ||
                       message.state() == v1::BLOCK_STATE_DEVICE ||
                       message.state() == v1::BLOCK_STATE_NOT_LEASED;
    if (!later) record.state = BlockState::kNeverSeen;
    return record;
  }
  absl::StatusOr<std::optional<BlockKey>> parent =
      OptionalIdFromProto<BlockKey>(message.parent_key(), "parent_key");
  if (!parent.ok()) return Broken(index, parent.status().message());
  if (message.scope() >= scopes) return Broken(index, "names no scope");
  if (message.priority() > kPriorityMax || message.priority_until_unix_ms() < 0 ||
      message.expires_unix_ms() < 0 || message.written_unix_ms() < 0) {
    return Broken(index, "has a priority or time that there is not");
  }
  record.parent = *parent;
  record.parent_public = message.parent_public();
  record.scope = message.scope();
  record.tokens.assign(message.tokens().begin(), message.tokens().end());
  record.provenance = {.writer = message.writer(), .written_unix_ms = message.written_unix_ms()};
  record.retention = {.priority = static_cast<uint8_t>(message.priority()),
                      .priority_until_unix_ms = message.priority_until_unix_ms(),
                      .expires_unix_ms = message.expires_unix_ms()};
  return record;
}

}  // namespace

absl::StatusOr<BlockRecords> RecordsFromProto(const v1::DescribeBlocksResponse& message,
                                              size_t keys) {
  if (static_cast<size_t>(message.records_size()) != keys) {
    return absl::InternalError(
        absl::StrCat("the peer described ", message.records_size(), " of ", keys, " blocks"));
  }
  BlockRecords records;
  for (const v1::ScopeRecord& scope : message.scopes()) {
    const std::optional<BlockKey> digest = BlockKey::FromBytes(scope.digest());
    if (!digest.has_value() || scope.adapter().size() > kNameBytesMax ||
        scope.salt().size() > kNameBytesMax) {
      return absl::InternalError("the peer described a scope that makes no sense");
    }
    records.scopes.push_back({*digest, scope.adapter(), scope.salt()});
  }
  for (int i = 0; i < message.records_size(); ++i) {
    absl::StatusOr<BlockRecord> record =
        RecordFromProto(message.records(i), static_cast<size_t>(i), records.scopes.size());
    if (!record.ok()) return record.status();
    records.blocks.push_back(*std::move(record));
  }
  return records;
}

PeerSource::PeerSource(std::string node_id, const ClientOptions& options,
                       const ClientSecurity* security, const ClientParts& parts)
    : node_id_(std::move(node_id)), security_(security), link_(options, parts) {}

template <typename Request, typename Response>
absl::Status PeerSource::Call(const PullTarget& target, absl::Duration timeout,
                              NodeLink::Method<Request, Response> method, const Request& request,
                              Response* response) {
  grpc::ClientContext context;
  security_->MetadataFor(target.tenant).AddTo(&context);
  SetDeadline(timeout, &context);
  {
    absl::MutexLock lock(&mutex_);
    if (cancelled_) return Stopped();
    calls_.insert(&context);
  }
  const grpc::Status status = (link_.control()->*method)(&context, request, response);
  absl::MutexLock lock(&mutex_);
  calls_.erase(&context);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return Silent(timeout);
  return FromGrpcStatus(status);
}

absl::StatusOr<BlockRecords> PeerSource::Describe(const PullTarget& target,
                                                  absl::Span<const BlockKey> keys) {
  v1::DescribeBlocksRequest request;
  request.set_fingerprint(std::string(target.fingerprint.view()));
  request.set_keys(KeysToProto(keys));
  v1::DescribeBlocksResponse response;
  const absl::Status status =
      Call(target, kCallMax, &v1::CacheNode::Stub::DescribeBlocks, request, &response);
  if (!status.ok()) return status;
  if (response.node_id() != node_id_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "at the address of peer \"", node_id_, "\" another node answers; correct --peer-file"));
  }
  return RecordsFromProto(response, keys.size());
}

absl::Status PeerSource::Promote(const PullTarget& target, absl::Span<const BlockKey> keys) {
  v1::LookupRequest request;
  request.set_fingerprint(std::string(target.fingerprint.view()));
  request.add_prompts()->set_keys(KeysToProto(keys));
  request.set_promote(true);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kPromoteMax)));
  v1::LookupResponse response;
  return Call(target, kPromoteMax + kCallMax, &v1::CacheNode::Stub::Lookup, request, &response);
}

// A transfer that Cancel can reach.
class PeerSource::Running {
 public:
  Running(PeerSource* source, RawCall* call) : source_(source), call_(call) {
    absl::MutexLock lock(&source_->mutex_);
    source_->transfers_.insert(call_);
    if (source_->cancelled_) call_->Cancel();
  }
  ~Running() {
    absl::MutexLock lock(&source_->mutex_);
    source_->transfers_.erase(call_);
  }

 private:
  PeerSource* const source_;
  RawCall* const call_;
};

absl::Status PeerSource::Fetch(const PullTarget& target, absl::Span<const BlockKey> keys,
                               Sink sink) {
  v1::GetRequest request;
  request.set_fingerprint(std::string(target.fingerprint.view()));
  request.set_keys(KeysToProto(keys));
  const CallMetadata metadata = security_->MetadataFor(target.tenant);
  RawCall call(link_.NextData(), kGetMethod, kFetchMax, &metadata);
  const Running running(this, &call);
  absl::Status taken;
  call.BeginWrite(EncodeMessage(request), /*last=*/true);
  call.BeginRead();
  while (true) {
    const std::optional<RawCall::Done> done = call.NextWithin(kSilenceMax);
    if (!done.has_value()) {
      taken = Silent(kSilenceMax);
      call.Cancel();
      break;
    }
    if (done->event == RawCall::Event::kWritten) continue;
    if (!done->ok) break;
    const absl::StatusOr<ReceivedFrame> frame =
        DecodeFrame(FrameKind::kGetResponse, call.message());
    taken = frame.ok() ? sink(frame->header(), frame->payload())
                       : absl::InternalError(absl::StrCat("the peer sent a frame that is none: ",
                                                          frame.status().message()));
    if (!taken.ok()) {
      call.Cancel();
      break;
    }
    call.BeginRead();
  }
  absl::Status status = call.Finish();
  return taken.ok() ? status : taken;
}

void PeerSource::ReportMismatch(const PullTarget& target, const BlockKey& key,
                                const SegmentId& segment) {
  v1::ReportMismatchRequest request;
  request.set_fingerprint(std::string(target.fingerprint.view()));
  request.mutable_segment()->set_key(std::string(key.view()));
  request.mutable_segment()->set_group(segment.group);
  request.mutable_segment()->set_slice(segment.slice);
  request.mutable_segment()->set_layer(segment.layer);
  v1::ReportMismatchResponse response;
  // What it makes of it is its own affair.
  (void)Call(target, kCallMax, &v1::CacheNode::Stub::ReportMismatch, request, &response);
}

void PeerSource::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (RawCall* call : transfers_) call->Cancel();
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

}  // namespace cairn::node
