// NodeMutation: what a node that is broken on purpose does differently, so that tests see who
// catches it. This one breaks nothing. One instance a node, over all its lives.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "cairn/v1/feed.pb.h"
#include "common/rpc/caller_identity.h"
#include "tests/sim/network/packet.h"

namespace cairn::sim {

class NodeMutation {
 public:
  virtual ~NodeMutation() = default;

  // May change what is asked. False: the call does nothing and answers OK, empty.
  virtual bool BeforeCall(Method /*method*/, Caller* /*caller*/,
                          google::protobuf::Message* /*request*/) {
    return true;
  }
  // May change what is answered.
  virtual void AfterCall(Method /*method*/, const google::protobuf::Message& /*request*/,
                         absl::Status* /*status*/, google::protobuf::Message* /*response*/) {}
  // Of what is cleared and retired, so that pulls do not bring it back.
  virtual bool NotesFences() { return true; }
  virtual grpc::ByteBuffer OnFrame(grpc::ByteBuffer frame) { return frame; }
  virtual void OnFeedMessage(v1::WatchBlocksResponse* /*message*/) {}
};

}  // namespace cairn::sim
