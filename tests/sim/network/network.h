// Network: the fake transport. Every call is a stream with two ends, as over HTTP/2.
//
// What one end sends arrives at the other in its order, later; different streams overtake each
// other. The weather decides how late, and what is lost. A stream ends when the server finishes it,
// when its deadline passes, or when it breaks; each end hears that once, as its last. One that
// drops a stream hears nothing any more. A host that is detached is gone with its streams and all
// that it sent; its peers hear of it later. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/caller_identity.h"
#include "tests/sim/event_log.h"
#include "tests/sim/network/packet.h"
#include "tests/sim/network/stream_end.h"
#include "tests/sim/network/weather.h"
#include "tests/sim/scheduler.h"

namespace cairn::sim {

class Network {
 public:
  enum class Side : uint8_t { kClient = 0, kServer = 1 };

  // Borrows all three.
  Network(Scheduler* scheduler, Weather* weather, EventLog* log);

  // The host is up. `name` is for the log; `acceptor` may be null for one that only calls.
  void Attach(HostId host, std::string name, Acceptor* acceptor);
  // The host begins to serve.
  void Serve(HostId host, Acceptor* acceptor);
  void Detach(HostId host);

  // With a deadline `timeout` from now, which may be infinite.
  StreamId Open(HostId from, HostId to, Method method, const Caller& caller, StreamEnd* client,
                absl::Duration timeout);
  // Of a stream that this side has closed or lost, these do nothing.
  void Send(StreamId stream, Side from, Packet packet);
  void DoneSending(StreamId stream);
  void Finish(StreamId stream, const absl::Status& status);
  void Drop(StreamId stream);

  // The connection under the stream is lost: both ends hear UNAVAILABLE.
  void Break(StreamId stream);
  // Open streams of the method, in order of their making.
  std::vector<StreamId> OpenStreams(Method method) const;

  // Both ends are there, nothing is on its way to the client, and what is sent will arrive.
  bool RestsWhole(StreamId stream) const;
  // When a packet of the stream was last lost, repeated or swapped.
  absl::Time LastFeedFault(StreamId stream) const;

 private:
  // Packets on their way in one direction of a stream before its sender waits.
  static constexpr size_t kWindow = 4;

  struct Item {
    enum class Kind : uint8_t { kOpen, kPacket, kPeerDone, kClosed };
    Kind kind = Kind::kPacket;
    Packet packet;
    absl::Status status;
  };
  struct End {
    HostId host = 0;
    StreamEnd* handler = nullptr;  // Of a server: none before the call arrived.
    bool open = true;
    bool lossy = false;      // Nothing more that is sent to it arrives.
    bool sent_owed = false;  // The peer waits for room in the window.
    std::deque<Item> coming;
    absl::Time last_arrival = absl::InfinitePast();
  };
  struct Stream {
    Method method = Method::kRoute;
    Caller caller;
    End ends[2];
    absl::Time last_feed_fault = absl::InfinitePast();

    End& at(Side side) { return ends[static_cast<size_t>(side)]; }
    const End& at(Side side) const { return ends[static_cast<size_t>(side)]; }
  };
  struct Host {
    std::string name;
    Acceptor* acceptor = nullptr;
  };

  static Side Other(Side side) { return side == Side::kClient ? Side::kServer : Side::kClient; }

  Stream* Find(StreamId id);
  void DecideFate(StreamId id, Stream* stream);
  void Enqueue(StreamId id, Stream* stream, Side to, Item item);
  void EnqueueFeedPacket(StreamId id, Stream* stream, Packet packet);
  void PaceSender(StreamId id, Stream* stream, Side from);
  void SayIsSent(StreamId id, const Stream& stream, Side from);
  void Arrive(StreamId id, Side side);
  void HandOver(StreamId id, Stream* stream, Side side, Item item);
  void CloseLater(StreamId id, const Stream& stream, Side side, absl::Status status,
                  absl::Duration delay);
  void Close(StreamId id, Side side, const absl::Status& status);
  static void Shut(End* end);
  void EraseIfOver(StreamId id);
  void Note(StreamId id, const Stream& stream, Side to, const Item& item);
  std::string NameOf(HostId host) const;

  Scheduler* const scheduler_;
  Weather* const weather_;
  EventLog* const log_;
  std::map<HostId, Host> hosts_;
  std::map<StreamId, Stream> streams_;
  StreamId next_id_ = 1;
};

}  // namespace cairn::sim
