// UnaryCall: one call of a client with its retries, as the product's clients make them: under one
// request id, after UNAVAILABLE, within a timeout over all.
//
// Sometimes it sends the request twice at once, as a client does that lost patience. `done` is
// called once, from an event, unless the call is destroyed before; it may destroy the call.
#pragma once

#include <functional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "tests/sim/alive.h"
#include "tests/sim/dice.h"
#include "tests/sim/world.h"

namespace cairn::sim {

// Who makes calls: a process, on whose behalf, with which dice.
struct ClientSide {
  World* world = nullptr;
  HostId host = 0;
  Caller caller;
  Dice* dice = nullptr;
};

class UnaryCall final : public StreamEnd {
 public:
  static constexpr uint32_t kAttemptsMax = 5;

  using Done = std::function<void(absl::StatusOr<std::string>)>;

  UnaryCall(const ClientSide& side, HostId to, Method method, std::string request,
            absl::Duration timeout, Done done);
  ~UnaryCall() override;

  UnaryCall(const UnaryCall&) = delete;
  UnaryCall& operator=(const UnaryCall&) = delete;

  void OnPacket(StreamId stream, Packet packet) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

 private:
  void Attempt();
  void RetryOrEnd(const absl::Status& status);
  void End(absl::StatusOr<std::string> result);

  const ClientSide side_;
  const HostId to_;
  const Method method_;
  const std::string request_;
  const absl::Time deadline_;
  Done done_;
  uint32_t attempts_ = 0;
  absl::btree_map<StreamId, std::string> open_;  // With what each answered.
  Alive alive_;
};

}  // namespace cairn::sim
