// DecodeSession: attention for a worker's sequences whose prefixes lie on one or several nodes.
//
// Every token of a sequence is at exactly one place: at a node's part (blocks of a prompt that it
// pins or leases, the last one perhaps with what is appended), or at the caller, who attends over
// it with kernels of its own. A layer asks all parts at once and merges what they answer, always in
// the order of the tokens. Nothing that a node says is used unchecked. A part that is lost is asked
// of its next holder; what no holder has is listed (TakeLost), for the worker to compute again.
//
// One thread's; calls block it. Borrows clients, prompts' tokens and the clients' parts. A session
// is of one rank: its parameters say which slices. It computes no attention itself and holds no KV.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/client_parts.h"
#include "client/cpp/decode/row_sizes.h"
#include "client/cpp/decode/session_part.h"
#include "client/cpp/decode/session_step.h"
#include "client/cpp/decode/session_streams.h"
#include "client/cpp/decode/session_types.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"

namespace cairn {

struct SessionRecovery;  // Of one step; session_recovery.cc.

class DecodeSession {
 public:
  // INVALID_ARGUMENT for parameters that do not fit the layout.
  static absl::StatusOr<std::unique_ptr<DecodeSession>> Make(
      const NamespaceHandle& name_space, absl::Span<const v1::AttentionParameters> parameters,
      const ClientParts& parts, const SessionOptions& options = {});
  ~DecodeSession();

  DecodeSession(const DecodeSession&) = delete;
  DecodeSession& operator=(const DecodeSession&) = delete;

  // Opens the parts of a sequence of the caller's number, which cover the prompt's first blocks
  // without gap or overlap. INVALID_ARGUMENT when they do not; else what the holders said of the
  // first part that none could open, and nothing stays open.
  absl::Status Open(uint64_t sequence, const Prompt& prompt, absl::Span<const PartWish> parts);
  // New sequences that begin as this one is now; what lies at nodes is shared. REQUIRES of this and
  // what follows: the sequence is open, and no step of it is under way.
  absl::Status Fork(uint64_t sequence, absl::Span<const uint64_t> forks, uint64_t reserve_tokens);
  // Forgets appended tokens at `length` and after. What the caller holds is the caller's to cut.
  absl::Status Truncate(uint64_t sequence, uint64_t length);
  // No later query sees positions in [sink_tokens, before): nodes give them back.
  absl::Status ReleaseWindow(uint64_t sequence, uint64_t before, uint64_t sink_tokens);
  void Close(uint64_t sequence);

  // From here on rows are to come.
  uint64_t CoveredTokens(uint64_t sequence) const;
  // Ranges that the caller attends over, for rows that end at `end` (OwnRows).
  std::vector<TokenRange> OwnTokens(uint64_t sequence, uint64_t end) const;
  // Whether the caller holds the tail.
  bool TailIsOwn(uint64_t sequence) const;
  // One line a place: tokens, and who holds them.
  std::vector<std::string> Places(uint64_t sequence) const;

  // Asks all parts for one layer of a batch, and waits for none; a number for Receive. The next
  // micro-batch may be sent before. Rows and outputs stay where they are until then.
  absl::StatusOr<uint64_t> Send(uint32_t parameters, uint32_t layer,
                                absl::Span<const SessionRows> rows);
  // Waits for the answers, asks again what was lost, and fills the rows' outputs. ABORTED with
  // TakeLost() where tokens are gone; the step is then to be made again from its first layer, as
  // rows that were appended stay. Another status is the first one that no other holder would help
  // against, naming the sequence.
  absl::Status Receive(uint64_t step, absl::Span<const OwnRows> own = {});
  absl::Status Attend(uint32_t parameters, uint32_t layer, absl::Span<const SessionRows> rows,
                      absl::Span<const OwnRows> own = {});

  // By sequence and position.
  std::vector<LostTokens> TakeLost();
  // From now on the caller holds these. REQUIRES: they were lost, not `again`.
  void TakeOver(const LostTokens& lost);

  size_t parameters_count() const { return parameters_.size(); }
  const RowSizes& sizes(uint32_t parameters) const { return sizes_.at(parameters); }
  const v1::AttentionParameters& parameters(uint32_t index) const { return parameters_.at(index); }
  const NamespaceHandle& name_space() const { return name_space_; }
  SessionCounters counters() const;

 private:
  struct Sequence {
    std::vector<SessionStep::Placed> places;
    uint64_t rows_end = 0;  // Of all that came.
  };

  DecodeSession(const NamespaceHandle& name_space, std::vector<v1::AttentionParameters> parameters,
                std::vector<RowSizes> sizes, const ClientParts& parts,
                const SessionOptions& options);

  Sequence& At(uint64_t sequence);
  const Sequence& At(uint64_t sequence) const;
  absl::Status CheckRows(uint32_t parameters, uint32_t layer, absl::Span<const SessionRows> rows);
  absl::Status Plan(size_t index, const SessionRows& rows, SessionStep* step);

  // Of a pass of failures: asks again, moves parts, notes what is lost; a status ends the step.
  absl::Status Recover(absl::Span<const SessionStep::Failure> failures, SessionStep* step,
                       SessionRecovery* recovery);
  absl::Status RecoverOne(const SessionStep::Failure& failure, SessionStep* step,
                          SessionRecovery* recovery);
  absl::Status OnLostStream(const SessionStep::Failure& failure, SessionStep* step,
                            SessionRecovery* recovery);
  absl::Status OnRefusal(const SessionStep::Failure& failure, SessionStep* step,
                         SessionRecovery* recovery);
  void Resume(size_t item, SessionStep* step, SessionRecovery* recovery);
  void MoveOn(size_t item, bool same_holder_first, SessionStep* step, SessionRecovery* recovery);
  // After its part was opened anew.
  void AskMoved(size_t item, SessionStep* step);
  void NoteGone(size_t item, SessionStep* step);
  void NoteLost(uint64_t sequence, const TokenRange& tokens, bool again);
  absl::Status LostStatus() const;

  const NamespaceHandle name_space_;
  const std::vector<v1::AttentionParameters> parameters_;
  const std::vector<RowSizes> sizes_;
  const ClientParts parts_;
  const SessionOptions options_;
  SessionStreams streams_;
  absl::flat_hash_map<uint64_t, Sequence> sequences_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<SessionStep>> under_way_;
  uint64_t next_step_ = 1;
  std::vector<LostTokens> lost_;
  SessionCounters counters_;
};

}  // namespace cairn
