// RankWrite: one rank writes its slices of reserved blocks and commits them: a few frames of a few
// pieces each, some segments cut in two, then commits in any order.
//
// `done` is called once, from an event, unless this is destroyed before; it may destroy this.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cairn/v1/write.pb.h"
#include "common/wire/frame.h"
#include "tests/sim/worker/request_context.h"

namespace cairn::sim {

class RankWrite final : public StreamEnd {
 public:
  static constexpr uint32_t kStreamsMax = 3;
  static constexpr size_t kUnansweredMax = 4;

  // A block of the reservation: its index there and its key.
  using Block = std::pair<uint32_t, BlockKey>;
  using Done = std::function<void(const absl::Status&)>;

  // `parts` are those that this rank writes, whole.
  RankWrite(RequestContext* context, HostId node, const TokenId& token, std::vector<Block> blocks,
            std::vector<PartLayers> parts, Done done);
  ~RankWrite() override;

  void OnPacket(StreamId stream, Packet packet) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

 private:
  // A piece to send: all of one segment, or a range of it.
  struct Piece {
    PieceHeader header;
    std::vector<uint8_t> bytes;
  };

  void AddPieces(const Block& block, const PartLayers& part);
  void BeginStream();
  void SendMore();
  void CommitNext();
  void End(const absl::Status& status);

  RequestContext* const context_;
  const HostId node_;
  const TokenId token_;
  std::vector<Piece> pieces_;
  std::vector<v1::Piece> commits_;
  size_t next_piece_ = 0;
  size_t unanswered_ = 0;
  uint32_t streams_ = 0;
  StreamId stream_ = 0;
  absl::Status refused_;
  std::unique_ptr<UnaryCall> call_;
  Done done_;
};

}  // namespace cairn::sim
