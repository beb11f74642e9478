#include "tests/sim/network/unary_call.h"

#include <utility>

namespace cairn::sim {
namespace {

constexpr uint32_t kTwiceChance = 200;
constexpr absl::Duration kBackoffLeast = absl::Milliseconds(25);
constexpr absl::Duration kBackoffMost = absl::Milliseconds(250);

// ABORTED says of these that the same request is still being answered.
bool MayStillRun(Method method) { return method == Method::kLookup || method == Method::kReserve; }

}  // namespace

UnaryCall::UnaryCall(const ClientSide& side, HostId to, Method method, std::string request,
                     absl::Duration timeout, Done done)
    : side_(side),
      to_(to),
      method_(method),
      request_(std::move(request)),
      deadline_(side.world->scheduler.Now() + timeout),
      done_(std::move(done)) {
  Attempt();
  if (!side_.world->weather.calm() && side_.dice->Chance(kTwiceChance)) Attempt();
}

UnaryCall::~UnaryCall() {
  for (const auto& [stream, answer] : open_) side_.world->network.Drop(stream);
}

void UnaryCall::Attempt() {
  ++attempts_;
  const StreamId stream = side_.world->network.Open(side_.host, to_, method_, side_.caller, this,
                                                    deadline_ - side_.world->scheduler.Now());
  open_[stream] = "";
  Packet packet;
  packet.bytes = request_;
  side_.world->network.Send(stream, Network::Side::kClient, std::move(packet));
}

void UnaryCall::OnPacket(StreamId stream, Packet packet) {
  open_[stream] = std::move(packet.bytes);
}

void UnaryCall::OnClosed(StreamId stream, const absl::Status& status) {
  const auto closed = open_.extract(stream);
  if (status.ok()) return End(std::move(closed.mapped()));
  if (open_.empty()) RetryOrEnd(status);
}

void UnaryCall::RetryOrEnd(const absl::Status& status) {
  const bool again =
      absl::IsUnavailable(status) || (absl::IsAborted(status) && MayStillRun(method_));
  const absl::Duration wait = side_.dice->Between(kBackoffLeast, kBackoffMost);
  if (!again || attempts_ >= kAttemptsMax || side_.world->scheduler.Now() + wait >= deadline_) {
    return End(status);
  }
  side_.world->scheduler.After(wait, side_.host, alive_.Guard([this] { Attempt(); }));
}

// The last call of all: `done` may destroy this.
void UnaryCall::End(absl::StatusOr<std::string> result) {
  for (const auto& [stream, answer] : open_) side_.world->network.Drop(stream);
  open_.clear();
  const Done done = std::move(done_);
  done(std::move(result));
}

}  // namespace cairn::sim
