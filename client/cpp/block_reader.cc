#include "client/cpp/block_reader.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/call_queue.h"
#include "client/cpp/local/local_copy.h"
#include "client/cpp/node_link.h"
#include "client/cpp/raw_call.h"
#include "client/cpp/received_blocks.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/frame_decoder.h"
#include "common/wire/limits.h"
#include "common/wire/message_codec.h"

namespace cairn {
namespace {

constexpr char kGetMethod[] = "/cairn.v1.CacheNode/Get";
// From here on two calls at once move a get.
constexpr uint64_t kTwoCallsBytesMin = 8 << 20;

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
                           absl::Span<const BlockKey> keys, const std::vector<size_t>& blocks,
                           ReceivedBlocks::Share share) {
  v1::GetRequest request;
  request.set_fingerprint(std::string(name_space.fingerprint().view()));
  if (options.lease) request.set_lease(std::string(options.lease->view()));
  std::vector<BlockKey> asked;
  asked.reserve(blocks.size() / share.count + 1);
  for (size_t i = share.index; i < blocks.size(); i += share.count) {
    asked.push_back(keys[blocks[i]]);
  }
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

// One call of an attempt, and what came of it.
class Transfer {
 public:
  Transfer(CallQueue* queue, NodeLink* link, absl::Duration remaining, ReceivedBlocks* received,
           ReceivedBlocks::Share share)
      : call_(queue, link->NextData(), kGetMethod, remaining, link->options().metadata),
        received_(received),
        share_(share) {}

  void Begin(const v1::GetRequest& request) {
    call_.BeginWrite(EncodeMessage(request), /*last=*/true);
    call_.BeginRead();
  }

  // Handles what has ended; false once the call is over, or the node broke the contract.
  bool Continue() {
    while (call_.HasEnded()) {
      const RawCall::Done done = call_.Next();
      if (done.event == RawCall::Event::kWritten) continue;
      if (!done.ok) return false;
      // The node sends the next frame while this one is copied and hashed.
      const grpc::ByteBuffer message = call_.TakeMessage();
      call_.BeginRead();
      broken_ = Take(message);
      if (!broken_.ok()) return false;
    }
    return true;
  }

  bool broken() const { return !broken_.ok(); }
  void Cancel() { call_.Cancel(); }
  bool HasEnded() const { return call_.HasEnded(); }

  // How it ended: to be called once, last.
  absl::Status Finish() {
    if (broken()) call_.Cancel();
    const absl::Status status = call_.Finish();
    return broken() ? broken_ : status;
  }

 private:
  absl::Status Take(const grpc::ByteBuffer& message) {
    const absl::StatusOr<ReceivedFrame> frame = DecodeFrame(FrameKind::kGetResponse, message);
    if (frame.ok()) return received_->Accept(frame->header(), frame->payload(), share_);
    return absl::InternalError(
        absl::StrCat("the node sent a frame that is none: ", frame.status().message()));
  }

  RawCall call_;
  ReceivedBlocks* received_;
  const ReceivedBlocks::Share share_;
  absl::Status broken_;
};

// One attempt, in as many calls as there are requests: feeds what comes to `received`, until all
// have ended or one did not end well, whose status it returns.
absl::Status Fetch(NodeLink* link, absl::Span<const v1::GetRequest> requests,
                   absl::Duration remaining, ReceivedBlocks* received) {
  CallQueue queue;
  std::vector<std::unique_ptr<Transfer>> running;
  for (size_t i = 0; i < requests.size(); ++i) {
    running.push_back(std::make_unique<Transfer>(&queue, link, remaining, received,
                                                 ReceivedBlocks::Share{i, requests.size()}));
    running.back()->Begin(requests[i]);
  }
  absl::Status status;
  while (!running.empty()) {
    // While one call waits, the queue takes what ends of the others.
    const auto at = std::find_if(running.begin(), running.end(),
                                 [](const auto& transfer) { return transfer->HasEnded(); });
    if (at == running.end()) {
      queue.Wait();
      continue;
    }
    if ((*at)->Continue()) continue;
    const absl::Status ended = (*at)->Finish();
    running.erase(at);
    if (ended.ok()) continue;
    status = ended;
    break;
  }
  for (const std::unique_ptr<Transfer>& transfer : running) transfer->Cancel();
  return status;
}

// Two calls at once keep both sides busy: of one, the node may not send the next frame before this
// side has seen its head, which it does not while it copies and hashes the frame before.
size_t CallsFor(size_t blocks, uint64_t block_bytes) {
  return blocks >= 2 && blocks >= kTwoCallsBytesMin / block_bytes ? 2 : 1;
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
      const size_t calls = CallsFor(blocks.size(), selection->bytes());
      std::vector<v1::GetRequest> requests;
      for (size_t call = 0; call < calls; ++call) {
        requests.push_back(MakeRequest(name_space, options, keys, blocks, {call, calls}));
      }
      return Fetch(link_, requests, attempt.remaining, &received);
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
