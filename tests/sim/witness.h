// Witness: what sees the simulation happen, at the places where processes meet.
//
// Each method is told of one kind of event, right after it; the arguments live for the call only. A
// witness changes nothing. Default: it looks away.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cairn/v1/router.pb.h"
#include "common/identity/fingerprint.h"
#include "common/identity/payload_map.h"
#include "common/rpc/caller_identity.h"
#include "tests/sim/network/packet.h"

namespace cairn::sim {

// One run of a process: the place and how often it started.
struct Life {
  size_t place = 0;
  uint64_t number = 0;

  friend auto operator<=>(const Life&, const Life&) = default;
};

// A call that a node or router has answered.
struct SeenCall {
  Life server;
  Method method = Method::kRoute;
  const Caller& caller;
  const google::protobuf::Message& request;
  const absl::Status& status;
  const google::protobuf::Message& response;
};

// A frame of a Get, as the node hands it out.
struct SeenFrame {
  Life node;
  const Caller& caller;
  const Fingerprint& fingerprint;
  absl::Span<const BlockKey> keys;  // Of the request.
  const std::string& lease;         // Of the request; empty: none.
  const grpc::ByteBuffer& frame;
};

// A Get that the node ended.
struct SeenGetEnd {
  Life node;
  const Caller& caller;
  const std::string& lease;
  const absl::Status& status;
};

// A segment whose bytes a worker takes for good.
struct SeenUse {
  const PayloadMap& map;
  const BlockKey& key;
  const SegmentId& segment;
  absl::Span<const uint8_t> bytes;
};

// A block that a node copied from another, and that can be read now.
struct SeenPull {
  Life node;
  const Fingerprint& fingerprint;
  const std::string& tenant;
  const BlockKey& key;
  int64_t written_unix_ms = 0;  // By its first writer.
};

class Witness {
 public:
  virtual ~Witness() = default;

  virtual void OnNodeStarted(const Life& /*node*/) {}
  virtual void OnNodeDied(const Life& /*node*/) {}
  virtual void OnNodeCall(const SeenCall& /*call*/) {}
  virtual void OnFrameSent(const SeenFrame& /*frame*/) {}
  virtual void OnGetEnded(const SeenGetEnd& /*end*/) {}
  // At its reader: the frame's digest when it was sent, and now. `keys` are those asked for.
  virtual void OnFrameArrived(absl::Span<const BlockKey> /*keys*/, uint64_t /*digest_sent*/,
                              uint64_t /*digest_now*/) {}
  virtual void OnUsed(const SeenUse& /*use*/) {}
  virtual void OnPulled(const SeenPull& /*pull*/) {}
  // A byte of the block was changed in the node's memory, by chance.
  virtual void OnDamaged(const Life& /*node*/, const BlockKey& /*key*/) {}
  virtual void OnRouterCall(const SeenCall& /*call*/) {}
  // Some time has passed.
  virtual void OnLook() {}
  // Faults and requests have ended, and so has all that followed from them.
  virtual void OnQuiet() {}
};

}  // namespace cairn::sim
