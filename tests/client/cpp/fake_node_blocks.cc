#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/identity/segment_digest.h"
#include "tests/client/cpp/fake_node.h"

namespace cairn::testing {
namespace {

const grpc::Status kCut(grpc::StatusCode::UNAVAILABLE, "cut");

absl::Span<const uint8_t> Bytes(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

BlockKey KeyAt(const std::string& keys, size_t index) {
  return *BlockKey::FromBytes(absl::string_view(keys).substr(index * kKeyBytes, kKeyBytes));
}

// No parts at all ask for every segment.
bool IsAskedFor(const v1::GetRequest& request, const SegmentId& id) {
  if (request.parts().empty()) return true;
  for (const v1::PartSelector& part : request.parts()) {
    if (part.group() != id.group || part.slice() != id.slice) continue;
    if (id.layer < part.first_layer()) continue;
    if (part.layers() == 0 || id.layer < part.first_layer() + part.layers()) return true;
  }
  return false;
}

}  // namespace

FakeNode::Frames FakeNode::FramesOf(const v1::GetRequest& request) {
  Frames frames;
  const PayloadMap& map = name_space_.payload_map();
  for (uint32_t block = 0; block * kKeyBytes < request.keys().size(); ++block) {
    const BlockKey key = KeyAt(request.keys(), block);
    const auto found = present_.find(key);
    frames.emplace_back();
    if (found == present_.end()) {
      frames.back().add_pieces()->set_block(block);
      frames.back().mutable_pieces(0)->set_state(v1::BLOCK_STATE_NEVER_SEEN);
      continue;
    }
    // One frame for each segment, whole parts only.
    for (const auto& [index, bytes] : found->second) {
      const SegmentId id = map.SegmentAt(index);
      if (!IsAskedFor(request, id)) continue;
      if (frames.back().pieces_size() > 0) frames.emplace_back();
      v1::Piece* piece = frames.back().add_pieces();
      piece->set_block(block);
      piece->set_group(id.group);
      piece->set_slice(id.slice);
      piece->set_layer(id.layer);
      piece->set_length(static_cast<uint32_t>(bytes.size()));
      piece->add_digests(SegmentDigest(key, id, Bytes(bytes)));
      frames.back().set_payload(bytes);
    }
  }
  if (bend_) bend_(&frames);
  return frames;
}

grpc::Status FakeNode::Get(grpc::ServerContext*, const v1::GetRequest* request,
                           grpc::ServerWriter<v1::GetResponse>* writer) {
  if (grpc::Status status = Begin("Get"); !status.ok()) return status;
  Frames frames;
  size_t cut_after = SIZE_MAX;
  {
    absl::MutexLock lock(&mutex_);
    gets_.push_back(*request);
    frames = FramesOf(*request);
    cut_after = std::exchange(cut_get_after_, SIZE_MAX);
  }
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i == cut_after) return kCut;
    if (!writer->Write(frames[i])) break;
  }
  return grpc::Status::OK;
}

grpc::Status FakeNode::Reserve(grpc::ServerContext*, const v1::ReserveRequest* request,
                               v1::ReserveResponse* response) {
  grpc::Status status = Begin("Reserve", request->request_id());
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  reserves_.push_back(*request);
  v1::ReserveOutcome outcome = v1::RESERVE_OUTCOME_RESERVED;
  if (!reserve_outcomes_.empty()) {
    outcome = reserve_outcomes_.front();
    reserve_outcomes_.erase(reserve_outcomes_.begin());
  }
  Token token;
  for (size_t i = 0; i * kKeyBytes < request->keys().size(); ++i) {
    const BlockKey key = KeyAt(request->keys(), i);
    token.keys.push_back(key);
    const bool there = present_.contains(key);
    response->add_answers()->set_outcome(there ? v1::RESERVE_OUTCOME_PRESENT : outcome);
    if (there || outcome != v1::RESERVE_OUTCOME_RESERVED) continue;
    token.reserved.push_back(static_cast<uint32_t>(i));
  }
  if (!token.reserved.empty()) {
    const std::string id = std::string(kKeyBytes - 1, 'T') + static_cast<char>(tokens_.size());
    tokens_[id] = std::move(token);
    response->set_token(id);
    response->set_token_ttl_ms(1000);
  } else {
    response->set_retry_after_ms(500);
  }
  return EndLocked("Reserve");
}

std::string FakeNode::TakePiece(const v1::Piece& piece, const std::string& bytes, Token* token) {
  const PayloadMap& map = name_space_.payload_map();
  size_t at = 0;
  for (int i = 0; i < piece.digests_size(); ++i) {
    const SegmentId id{piece.group(), piece.slice(), piece.layer() + static_cast<uint32_t>(i)};
    const auto segment = map.FindSegment(id);
    if (!segment || piece.block() >= token->keys.size()) return "no such segment";
    std::string& written = token->written[{piece.block(), *segment}];
    const size_t whole = map.SegmentBytesAt(*segment);
    const size_t take = std::min(whole - piece.offset(), bytes.size() - at);
    if (piece.offset() == 0) written.clear();
    if (written.size() != piece.offset()) return "not in order";
    written += bytes.substr(at, take);
    at += take;
    if (written.size() == whole &&
        SegmentDigest(token->keys[piece.block()], id, Bytes(written)) != piece.digests(i)) {
      written.clear();
      return "digest differs";
    }
  }
  return at == bytes.size() ? "" : "length differs";
}

v1::WriteResponse FakeNode::TakeFrame(const v1::WriteRequest& frame) {
  absl::MutexLock lock(&mutex_);
  ++frames_written_;
  v1::WriteResponse response;
  const auto token = tokens_.find(frame.token());
  size_t at = 0;
  for (int i = 0; i < frame.pieces_size(); ++i) {
    const v1::Piece& piece = frame.pieces(i);
    std::string error;
    if (token == tokens_.end()) {
      error = "token unknown";
    } else if (refuse_pieces_ && i == 0) {
      error = "refused";
    } else {
      error = TakePiece(piece, frame.payload().substr(at, piece.length()), &token->second);
    }
    at += piece.length();
    if (error.empty()) continue;
    v1::PieceError* refusal = response.add_errors();
    refusal->set_piece(static_cast<uint32_t>(i));
    refusal->set_code(grpc::StatusCode::ABORTED);
    refusal->set_message(error);
  }
  return response;
}

grpc::Status FakeNode::Write(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::WriteResponse, v1::WriteRequest>* stream) {
  if (grpc::Status status = Begin("Write"); !status.ok()) return status;
  size_t cut_after = SIZE_MAX;
  bool twice = false;
  {
    absl::MutexLock lock(&mutex_);
    cut_after = std::exchange(cut_write_after_, SIZE_MAX);
    if (const size_t until = std::exchange(hold_write_until_, 0); until > 0) {
      const auto enough = [this, until] {
        mutex_.AssertReaderHeld();
        return frames_written_ >= until;
      };
      mutex_.Await(absl::Condition(&enough));
      return kCut;
    }
    twice = answer_twice_;
  }
  v1::WriteRequest frame;
  for (size_t frames = 0; frames != cut_after; ++frames) {
    if (!stream->Read(&frame)) return grpc::Status::OK;
    const v1::WriteResponse response = TakeFrame(frame);
    stream->Write(response);
    if (twice) stream->Write(response);
  }
  return kCut;
}

bool FakeNode::Complete(const Token& token, uint32_t block) const {
  const PayloadMap& map = name_space_.payload_map();
  for (const PayloadMap::Part& part : map.parts()) {
    for (size_t i = 0; part.required && i < part.layers; ++i) {
      if (!token.committed.contains({block, part.first_segment + i})) return false;
    }
  }
  return true;
}

grpc::Status FakeNode::Commit(grpc::ServerContext*, const v1::CommitRequest* request,
                              v1::CommitResponse* response) {
  if (grpc::Status status = Begin("Commit"); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto found = tokens_.find(request->token());
  if (found == tokens_.end()) {
    return grpc::Status(grpc::StatusCode::ABORTED, "token unknown");
  }
  Token& token = found->second;
  const PayloadMap& map = name_space_.payload_map();
  for (int i = 0; i < request->pieces_size(); ++i) {
    const v1::Piece& piece = request->pieces(i);
    for (int d = 0; d < piece.digests_size(); ++d) {
      const SegmentId id{piece.group(), piece.slice(), piece.layer() + static_cast<uint32_t>(d)};
      const std::pair<uint32_t, size_t> at{piece.block(), *map.FindSegment(id)};
      if (SegmentDigest(token.keys[piece.block()], id, Bytes(token.written[at])) ==
          piece.digests(d)) {
        token.committed[at] = piece.digests(d);
        continue;
      }
      v1::PieceError* error = response->add_errors();
      error->set_piece(static_cast<uint32_t>(i));
      error->set_code(grpc::StatusCode::ABORTED);
      error->set_message("another digest was written");
    }
  }
  for (const uint32_t block : token.reserved) {
    if (!Complete(token, block)) {
      response->add_missing()->set_block(block);
      continue;
    }
    response->set_blocks_present(response->blocks_present() + 1);
    for (const auto& [at, bytes] : token.written) {
      if (at.first == block) present_[token.keys[block]][at.second] = bytes;
    }
  }
  response->set_complete(response->missing_size() == 0);
  return EndLocked("Commit");
}

void FakeNode::AddBlock(const BlockKey& key, absl::Span<const uint8_t> bytes) {
  const PayloadMap& map = name_space_.payload_map();
  CAIRN_CHECK(bytes.size() == map.block_bytes());
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < map.segment_count(); ++i) {
    const auto segment = bytes.subspan(map.SegmentOffset(i), map.SegmentBytesAt(i));
    present_[key][i].assign(segment.begin(), segment.end());
  }
}

std::optional<std::string> FakeNode::Block(const BlockKey& key) const {
  absl::MutexLock lock(&mutex_);
  const auto found = present_.find(key);
  if (found == present_.end()) return std::nullopt;
  std::string bytes;
  for (const auto& [index, segment] : found->second) bytes += segment;
  return bytes;
}

}  // namespace cairn::testing
