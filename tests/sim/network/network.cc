#include "tests/sim/network/network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "kernels/byte_hash.h"

namespace cairn::sim {
namespace {

// From a packet that was sent to the next that may be.
constexpr absl::Duration kPace = absl::Microseconds(20);

bool IsUnary(Method method) {
  return method != Method::kGet && method != Method::kWrite && method != Method::kWatchBlocks;
}

absl::Status Gone(Network::Side side) {
  return side == Network::Side::kClient ? absl::UnavailableError("the connection was lost")
                                        : absl::CancelledError("the client is gone");
}

}  // namespace

Network::Network(Scheduler* scheduler, Weather* weather, EventLog* log)
    : scheduler_(scheduler), weather_(weather), log_(log) {}

void Network::Attach(HostId host, std::string name, Acceptor* acceptor) {
  CAIRN_CHECK(hosts_.emplace(host, Host{std::move(name), acceptor}).second);
}

void Network::Serve(HostId host, Acceptor* acceptor) { hosts_.at(host).acceptor = acceptor; }

void Network::Detach(HostId host) {
  CAIRN_CHECK(hosts_.erase(host) == 1);
  std::vector<StreamId> touched;
  for (auto& [id, stream] : streams_) {
    for (const Side side : {Side::kClient, Side::kServer}) {
      if (stream.at(side).host != host) continue;
      touched.push_back(id);
      Shut(&stream.at(side));
      End& peer = stream.at(Other(side));
      peer.coming.clear();
      peer.lossy = true;
      if (!peer.open) continue;
      CloseLater(id, stream, Other(side), Gone(Other(side)), weather_->NoticeDelay());
    }
  }
  for (const StreamId id : touched) EraseIfOver(id);
}

StreamId Network::Open(HostId from, HostId to, Method method, const Caller& caller,
                       StreamEnd* client, absl::Duration timeout) {
  CAIRN_CHECK(hosts_.contains(from) && client != nullptr);
  const StreamId id = next_id_++;
  Stream& stream = streams_[id];
  stream.method = method;
  stream.caller = caller;
  stream.at(Side::kClient).host = from;
  stream.at(Side::kClient).handler = client;
  stream.at(Side::kServer).host = to;
  if (timeout < absl::InfiniteDuration()) {
    CloseLater(id, stream, Side::kClient, absl::DeadlineExceededError("the deadline passed"),
               timeout);
  }
  const auto server = hosts_.find(to);
  if (server == hosts_.end() || server->second.acceptor == nullptr) {
    Shut(&stream.at(Side::kServer));
    CloseLater(id, stream, Side::kClient, absl::UnavailableError("nobody listens there"),
               weather_->NoticeDelay());
    return id;
  }
  if (IsUnary(method)) DecideFate(id, &stream);
  Enqueue(id, &stream, Side::kServer, {.kind = Item::Kind::kOpen, .packet = {}, .status = {}});
  return id;
}

void Network::DecideFate(StreamId id, Stream* stream) {
  const Weather::CallFate fate = weather_->FateOfCall();
  if (fate == Weather::CallFate::kArrives) return;
  const bool request_lost = fate == Weather::CallFate::kRequestLost;
  stream->at(request_lost ? Side::kServer : Side::kClient).lossy = true;
  // Whoever waits learns that the connection went, or only that its time is over.
  // Drawn one after the other: compilers differ in which operand of a sum comes first.
  const absl::Duration way =
      weather_->DelayOf(stream->at(Side::kServer).host, stream->at(Side::kClient).host);
  const absl::Duration notice = weather_->NoticeDelay();
  CloseLater(id, *stream, Side::kClient, Gone(Side::kClient), way + notice);
}

void Network::Send(StreamId id, Side from, Packet packet) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->at(from).open) return;
  packet.sent_at = scheduler_->Now();
  if ((stream->method == Method::kGet || stream->method == Method::kWrite) &&
      weather_->BreaksStream()) {
    Break(id);
    return;
  }
  if (packet.expendable) {
    EnqueueFeedPacket(id, stream, std::move(packet));
  } else {
    Enqueue(id, stream, Other(from), {.packet = std::move(packet), .status = {}});
  }
  PaceSender(id, stream, from);
}

void Network::EnqueueFeedPacket(StreamId id, Stream* stream, Packet packet) {
  const Weather::FeedFate fate = weather_->FateOfFeedPacket();
  if (fate != Weather::FeedFate::kArrives) {
    stream->last_feed_fault = scheduler_->Now();
    log_->Note(absl::StrCat("feed #", id, fate == Weather::FeedFate::kLost ? " loses" : " mangles",
                            " a packet"));
  }
  if (fate == Weather::FeedFate::kLost) return;
  if (fate == Weather::FeedFate::kRepeated) {
    Item copy;
    copy.packet.bytes = packet.bytes;
    copy.packet.expendable = true;
    copy.packet.sent_at = packet.sent_at;
    Enqueue(id, stream, Side::kClient, std::move(copy));
  }
  Enqueue(id, stream, Side::kClient, {.packet = std::move(packet), .status = {}});
  std::deque<Item>& coming = stream->at(Side::kClient).coming;
  if (fate != Weather::FeedFate::kSwapped || coming.size() < 2) return;
  Item& last = coming[coming.size() - 1];
  Item& before = coming[coming.size() - 2];
  if (before.kind == Item::Kind::kPacket && before.packet.expendable) std::swap(last, before);
}

void Network::DoneSending(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->at(Side::kClient).open) return;
  Enqueue(id, stream, Side::kServer, {.kind = Item::Kind::kPeerDone, .packet = {}, .status = {}});
}

void Network::Finish(StreamId id, const absl::Status& status) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->at(Side::kServer).open) return;
  Shut(&stream->at(Side::kServer));
  Enqueue(id, stream, Side::kClient, {.kind = Item::Kind::kClosed, .packet = {}, .status = status});
  EraseIfOver(id);
}

void Network::Drop(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->at(Side::kClient).open) return;
  Shut(&stream->at(Side::kClient));
  const End& server = stream->at(Side::kServer);
  if (server.open) {
    CloseLater(id, *stream, Side::kServer, Gone(Side::kServer),
               weather_->DelayOf(stream->at(Side::kClient).host, server.host));
  }
  EraseIfOver(id);
}

void Network::Break(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  log_->Note(absl::StrCat(MethodName(stream->method), "#", id, " breaks"));
  for (const Side side : {Side::kClient, Side::kServer}) {
    End& end = stream->at(side);
    end.coming.clear();
    end.lossy = true;
    if (end.open) CloseLater(id, *stream, side, Gone(side), weather_->NoticeDelay());
  }
}

std::vector<StreamId> Network::OpenStreams(Method method) const {
  std::vector<StreamId> open;
  for (const auto& [id, stream] : streams_) {
    if (stream.method == method && stream.at(Side::kClient).open && stream.at(Side::kServer).open) {
      open.push_back(id);
    }
  }
  return open;
}

bool Network::RestsWhole(StreamId id) const {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return false;
  const End& client = found->second.at(Side::kClient);
  return client.open && found->second.at(Side::kServer).open && !client.lossy &&
         client.coming.empty();
}

absl::Time Network::LastFeedFault(StreamId id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? absl::InfinitePast() : found->second.last_feed_fault;
}

Network::Stream* Network::Find(StreamId id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

void Network::Enqueue(StreamId id, Stream* stream, Side to, Item item) {
  End& end = stream->at(to);
  if (!end.open || end.lossy) return;
  const absl::Duration delay = weather_->DelayOf(stream->at(Other(to)).host, end.host);
  end.last_arrival = std::max(end.last_arrival, scheduler_->Now() + delay);
  end.coming.push_back(std::move(item));
  scheduler_->At(end.last_arrival, end.host, [this, id, to] { Arrive(id, to); });
}

void Network::PaceSender(StreamId id, Stream* stream, Side from) {
  if (IsUnary(stream->method)) return;
  if (stream->at(Other(from)).coming.size() < kWindow) {
    SayIsSent(id, *stream, from);
  } else {
    stream->at(Other(from)).sent_owed = true;
  }
}

void Network::SayIsSent(StreamId id, const Stream& stream, Side from) {
  scheduler_->After(kPace, stream.at(from).host, [this, id, from] {
    Stream* found = Find(id);
    if (found != nullptr && found->at(from).open && found->at(from).handler != nullptr) {
      found->at(from).handler->OnSent(id);
    }
  });
}

void Network::Arrive(StreamId id, Side side) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  End& end = stream->at(side);
  if (!end.open || end.coming.empty()) return;
  Item item = std::move(end.coming.front());
  end.coming.pop_front();
  if (end.sent_owed && end.coming.size() < kWindow) {
    end.sent_owed = false;
    SayIsSent(id, *stream, Other(side));
  }
  Note(id, *stream, side, item);
  HandOver(id, stream, side, std::move(item));
}

void Network::HandOver(StreamId id, Stream* stream, Side side, Item item) {
  End& end = stream->at(side);
  switch (item.kind) {
    case Item::Kind::kOpen: {
      Acceptor* const acceptor = hosts_.at(end.host).acceptor;
      const Caller caller = stream->caller;
      StreamEnd* const handler = acceptor->Accept(id, stream->method, caller);
      if (Stream* still = Find(id); still != nullptr) still->at(side).handler = handler;
      return;
    }
    case Item::Kind::kPacket:
      if (end.handler != nullptr) end.handler->OnPacket(id, std::move(item.packet));
      return;
    case Item::Kind::kPeerDone:
      if (end.handler != nullptr) end.handler->OnPeerDone(id);
      return;
    case Item::Kind::kClosed:
      Close(id, side, item.status);
      return;
  }
}

void Network::CloseLater(StreamId id, const Stream& stream, Side side, absl::Status status,
                         absl::Duration delay) {
  scheduler_->After(delay, stream.at(side).host,
                    [this, id, side, status = std::move(status)] { Close(id, side, status); });
}

void Network::Close(StreamId id, Side side, const absl::Status& status) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->at(side).open) return;
  StreamEnd* const handler = stream->at(side).handler;
  Shut(&stream->at(side));
  // The other end learns of a client that gave up.
  const End& server = stream->at(Side::kServer);
  if (side == Side::kClient && server.open) {
    CloseLater(id, *stream, Side::kServer, Gone(Side::kServer),
               weather_->DelayOf(stream->at(Side::kClient).host, server.host));
  }
  EraseIfOver(id);
  if (handler != nullptr) handler->OnClosed(id, status);
}

void Network::Shut(End* end) {
  end->open = false;
  end->handler = nullptr;
  end->coming.clear();
}

void Network::EraseIfOver(StreamId id) {
  const Stream* stream = Find(id);
  if (stream == nullptr) return;
  if (!stream->at(Side::kClient).open && !stream->at(Side::kServer).open) streams_.erase(id);
}

void Network::Note(StreamId id, const Stream& stream, Side to, const Item& item) {
  std::string what;
  switch (item.kind) {
    case Item::Kind::kOpen:
      what = "call";
      break;
    case Item::Kind::kPacket:
      what = item.packet.is_frame
                 ? absl::StrCat("frame ", item.packet.frame.Length())
                 : absl::StrCat("message ", item.packet.bytes.size(), " ",
                                absl::Hex(kernels::ByteHash64(item.packet.bytes.data(),
                                                              item.packet.bytes.size(), 0)));
      break;
    case Item::Kind::kPeerDone:
      what = "done";
      break;
    case Item::Kind::kClosed:
      what = item.status.ok() ? "OK" : absl::StatusCodeToString(item.status.code());
      break;
  }
  log_->Note(absl::StrCat(NameOf(stream.at(Other(to)).host), ">", NameOf(stream.at(to).host), " ",
                          MethodName(stream.method), "#", id, " ", what));
}

std::string Network::NameOf(HostId host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? absl::StrCat("host ", host) : found->second.name;
}

}  // namespace cairn::sim
