// DecodeCalls: what the unary calls of served attention do, without RPC: check the message, work on
// the table of sequences, fill the answer.
//
// The service's shells resolve who calls, run what is a job of the engine there, and map the
// status. Stateless but for its parts, which it borrows; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cache_node/decode/engine/decode_engine.h"
#include "cache_node/service/decode_bytes.h"
#include "cache_node/service/node_calls.h"
#include "cache_node/service/request_memory.h"
#include "cache_node/store/block_store.h"
#include "cairn/v1/decode.pb.h"
#include "common/identity/block_hasher.h"
#include "common/rpc/caller_identity.h"

namespace cairn::node {

struct DecodeNamespace {
  Fingerprint fingerprint;
  const PayloadMap* map = nullptr;
};
// INVALID_ARGUMENT for what is no fingerprint; FAILED_PRECONDITION for one that is unknown to the
// tenant.
absl::StatusOr<DecodeNamespace> FindDecodeNamespace(const BlockStore& store,
                                                    absl::string_view tenant,
                                                    absl::string_view fingerprint);

absl::Status NoBytesLeft(const DecodeBytes& bytes);
// RESOURCE_EXHAUSTED without a delay gets one.
absl::Status WithDecodeRetry(absl::Status status);

class DecodeCalls {
 public:
  struct Parts {
    BlockStore* store = nullptr;
    NodeCalls* calls = nullptr;
    RequestMemory* memory = nullptr;
    const BlockHasher* hasher = nullptr;
    const NodeFacts* facts = nullptr;
    bool serves = false;         // Any attention,
    bool has_sequences = false;  // and there is memory for sequences.
  };

  explicit DecodeCalls(const Parts& parts) : parts_(parts) {}

  // FAILED_PRECONDITION: this node serves no attention.
  absl::Status CheckServes() const;

  // A sequence that is to be opened, while it may wait for blocks.
  struct Opening {
    SequenceTable::Opening opening;
    uint32_t blocks_max = 0;
    RequestMemory::Turn turn;
    v1::LookupResponse found;
    std::optional<NodeCalls::PendingLookup> lookup;  // None: the prompt has no full block.
    absl::Duration wait;
  };
  // Nothing: `response` is what an earlier request with this id was answered.
  absl::StatusOr<std::optional<Opening>> BeginOpen(const Caller& caller,
                                                   const v1::OpenSequenceRequest& request,
                                                   v1::OpenSequenceResponse* response);
  // False: not `last`, and a block is on its way. True: what is there is pinned.
  absl::StatusOr<bool> TryPin(Opening& opening, bool last);
  // `gone`: nobody will hear of it, unless it can be asked for again.
  static absl::Status FinishOpen(SequenceTable& sequences, Opening opening, bool gone,
                                 v1::OpenSequenceResponse* response);

  // In two parts, the second on the engine.
  absl::StatusOr<std::optional<RequestMemory::Turn>> BeginFork(
      const Caller& caller, const v1::ForkSequenceRequest& request,
      v1::ForkSequenceResponse* response);
  static absl::Status FinishFork(SequenceTable& sequences, const Caller& caller,
                                 const v1::ForkSequenceRequest& request, RequestMemory::Turn turn,
                                 v1::ForkSequenceResponse* response);

  // On the engine.
  static absl::Status Truncate(SequenceTable& sequences, const Caller& caller,
                               const v1::TruncateSequenceRequest& request,
                               v1::TruncateSequenceResponse* response);
  static absl::Status ReleaseWindow(SequenceTable& sequences, const Caller& caller,
                                    const v1::ReleaseWindowRequest& request,
                                    v1::ReleaseWindowResponse* response);
  static absl::Status Get(SequenceTable& sequences, const Caller& caller,
                          const v1::GetSequenceRequest& request, v1::GetSequenceResponse* response);
  static absl::Status Close(SequenceTable& sequences, const Caller& caller,
                            const v1::CloseSequencesRequest& request,
                            v1::CloseSequencesResponse* response);

 private:
  absl::Status CheckOpens() const;
  absl::Status SetPrompt(const Caller& caller, const v1::OpenSequenceRequest& request,
                         SequenceTable::Opening* opening) const;

  const Parts parts_;
};

}  // namespace cairn::node
