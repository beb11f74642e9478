#include "client/cpp/block_reader.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/local/local_copy.h"
#include "client/cpp/node_link.h"
#include "client/cpp/raw_call.h"
#include "client/cpp/received_blocks.h"
#include "common/base/hex.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"

namespace cairn {
namespace {

constexpr char kGetMethod[] = "/cairn.v1.CacheNode/Get";

absl::Status CheckKeys(absl::Span<const BlockKey> keys, size_t parts) {
  if (keys.size() > kKeysPerGetMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(keys.size(), " keys; one get takes at most ", kKeysPerGetMax));
  }
  if (parts > kPartsPerGetMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts, " parts; one get takes at most ", kPartsPerGetMax));
  }
  absl::flat_hash_set<BlockKey> seen;
  for (const BlockKey& key : keys) {
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat("key ", ToHex(key.view()), " comes twice"));
    }
  }
  return absl::OkStatus();
}

v1::GetRequest MakeRequest(const NamespaceHandle& name_space, const GetOptions& options,
                           absl::Span<const BlockKey> keys, const std::vector<size_t>& blocks) {
  v1::GetRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  if (options.lease) request.set_lease(std::string(options.lease->view()));
  std::vector<BlockKey> asked;
  asked.reserve(blocks.size());
  for (const size_t block : blocks) asked.push_back(keys[block]);
  request.set_keys(KeysToProto(asked));
  for (const PartLayers& part : options.parts) {
    v1::PartSelector* selector = request.add_parts();
    selector->set_group(part.group);
    selector->set_slice(part.slice);
    selector->set_first_layer(part.first_layer);
    selector->set_layers(part.layers);
  }
  return request;
}

// One attempt: sends the request and feeds what comes to `received`, until the end or the first
// break of the contract.
absl::Status Fetch(NodeLink* link, const v1::GetRequest& request, absl::Duration remaining,
                   ReceivedBlocks* received) {
  RawCall call(link->NextData(), kGetMethod, remaining, link->options().metadata);
  absl::Status broken;
  call.BeginWrite(EncodeMessage(request), /*last=*/true);
  call.BeginRead();
  while (true) {
    const RawCall::Done done = call.Next();
    if (done.event == RawCall::Event::kWritten) continue;
    if (!done.ok) break;
    // The node sends the next frame while this one is copied and hashed.
    const grpc::ByteBuffer message = call.TakeMessage();
    call.BeginRead();
    const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kGetResponse, message);
    broken = frame.ok() ? received->Accept(frame->header(), frame->payload())
                        : absl::InternalError(absl::StrCat("the node sent a frame that is none: ",
                                                           frame.status().message()));
    if (!broken.ok()) {
      call.Cancel();
      break;
    }
  }
  const absl::Status status = call.Finish();
  return broken.ok() ? status : broken;
}

GetResult Refused(size_t blocks, absl::Status status) {
  GetResult result;
  result.status = std::move(status);
  result.blocks.resize(blocks);
  return result;
}

}  // namespace

GetResult BlockReader::Get(const NamespaceHandle& name_space, absl::Span<const BlockKey> keys,
                           SegmentPlace place, const GetOptions& options) const {
  const absl::StatusOr<SegmentSelection> selection =
      SegmentSelection::Make(name_space.payload_map(), options.parts);
  if (!selection.ok()) return Refused(keys.size(), selection.status());
  ReceivedBlocks received(&*selection, keys, place);
  absl::Status status = CheckKeys(keys, options.parts.size());
  if (status.ok()) status = received.CheckPlaces();
  if (!status.ok()) return Refused(keys.size(), status);

  if (!keys.empty()) {
    absl::Duration timeout = link_->DataTimeout(options.timeout);
    if (LocalLink* local = link_->local(); local != nullptr) {
      const absl::Time deadline = local->Deadline(timeout);
      CopyLocalBlocks(local, name_space, keys, place, options, *selection, deadline, &received);
      timeout = local->LeftFor(deadline);
    }
    status = link_->runner().Run(timeout, {}, [&](const CallRunner::Attempt& attempt) {
      const std::vector<size_t> blocks = received.BeginAttempt();
      if (blocks.empty()) return absl::OkStatus();
      return Fetch(link_, MakeRequest(name_space, options, keys, blocks), attempt.remaining,
                   &received);
    });
  }
  GetResult result = received.Finish(std::move(status));
  if (!options.report_mismatches) return result;
  for (const MismatchedSegment& mismatch : result.mismatches) {
    const absl::StatusOr<bool> confirmed =
        ReportMismatch(name_space.fingerprint(), mismatch.key, mismatch.id);
    if (!confirmed.ok()) break;
    if (*confirmed) ++result.mismatches_confirmed;
  }
  return result;
}

absl::StatusOr<bool> BlockReader::ReportMismatch(const Fingerprint& fingerprint,
                                                 const BlockKey& key, const SegmentId& id) const {
  v1::ReportMismatchRequest request;
  request.set_fingerprint(std::string(fingerprint.view()));
  v1::SegmentRef* segment = request.mutable_segment();
  segment->set_key(std::string(key.view()));
  segment->set_group(id.group);
  segment->set_slice(id.slice);
  segment->set_layer(id.layer);
  v1::ReportMismatchResponse response;
  const absl::Status status =
      link_->Call(&v1::CacheNode::Stub::ReportMismatch, request, {}, {}, &response);
  if (!status.ok()) return status;
  return response.confirmed();
}

}  // namespace cairn
