// GetCall: one rank's Get of leased blocks, verified as the product's reader does it.
//
// `done` is called once, from an event, unless the call is destroyed before; it may destroy it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/cpp/namespace_handle.h"
#include "client/cpp/received_blocks.h"
#include "tests/sim/network/unary_call.h"

namespace cairn::sim {

class GetCall final : public StreamEnd {
 public:
  static constexpr uint32_t kAttemptsMax = 3;

  struct What {
    const NamespaceHandle* name_space = nullptr;
    std::vector<BlockKey> keys;
    std::optional<LeaseId> lease;
    std::vector<PartLayers> parts;
    // Where the blocks lie, one after the other in slot order.
    absl::Span<uint8_t> place;
  };
  using Done = std::function<void(const GetResult&)>;

  GetCall(const ClientSide& side, HostId node, What what, absl::Duration timeout, Done done);
  ~GetCall() override;

  void OnPacket(StreamId stream, Packet packet) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

 private:
  void Attempt();
  void End(absl::Status status);

  const ClientSide side_;
  const HostId node_;
  const What what_;
  const absl::Time deadline_;
  Done done_;
  const SegmentSelection selection_;
  const ContiguousBlocks place_;
  ReceivedBlocks received_;
  uint32_t attempts_ = 0;
  StreamId stream_ = 0;
};

}  // namespace cairn::sim
