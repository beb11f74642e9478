// UnaryServer: the server's side of calls with one request and one answer.
//
// Not thread-safe. Whoever owns it answers each request once, at once or later; an answer to a
// client that is gone goes nowhere.
#pragma once

#include <google/protobuf/message_lite.h>

#include <functional>
#include <map>
#include <string>

#include "tests/sim/network/network.h"

namespace cairn::sim {

class UnaryServer final : public StreamEnd {
 public:
  struct Request {
    StreamId stream = 0;
    Method method = Method::kRoute;
    Caller caller;
    std::string bytes;
  };
  using Handle = std::function<void(Request)>;
  // The client of the stream waits no more.
  using Gone = std::function<void(StreamId)>;

  UnaryServer(Network* network, Handle handle, Gone gone);

  StreamEnd* Accept(StreamId stream, Method method, const Caller& caller);
  void Answer(StreamId stream, const absl::Status& status,
              const google::protobuf::MessageLite& response);

  void OnPacket(StreamId stream, Packet packet) override;
  void OnClosed(StreamId stream, const absl::Status& status) override;

 private:
  struct Open {
    Method method = Method::kRoute;
    Caller caller;
  };

  Network* const network_;
  const Handle handle_;
  const Gone gone_;
  std::map<StreamId, Open> open_;
};

}  // namespace cairn::sim
