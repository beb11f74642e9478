// ServedAttention: a model's attention over a DecodeSession; what no node holds is attended here.
//
// Of one rank: the heads of the session's parameters. While nodes compute, the ranges that are the
// worker's own (its tail, what was lost) are attended over pages of this process, in the layout's
// dtype. Borrows the session. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/decode/decode_session.h"
#include "client/replay/model/head_shape.h"
#include "client/replay/model/layer_attention.h"
#include "client/replay/model/local_attention.h"

namespace cairn::replay {

class ServedAttention final : public LayerAttention {
 public:
  // INVALID_ARGUMENT when the session's first parameters are not of float32 rows and one group of
  // full attention, which is what the model has. `pages_max` bounds what is held here.
  static absl::StatusOr<std::unique_ptr<ServedAttention>> Make(DecodeSession* session,
                                                               uint64_t pages_max);

  // Of this rank.
  const HeadShape& heads() const { return heads_; }
  DecodeSession* session() const { return session_; }

  // Tokens of the rows of the next steps, so that nodes can seal what fills: by sequence, from
  // position 0. Borrowed until replaced; without them nothing is sealed.
  void SetTokens(uint64_t sequence, const std::vector<uint32_t>* tokens);

  // ABORTED when tokens are lost: session()->TakeLost() has them.
  absl::Status Attend(uint32_t layer, absl::Span<const AttentionRows> rows) override;

  // Forgets of the ranges that begin before `position` what lies there and after, also what only
  // some layers have.
  absl::Status Rewind(uint64_t sequence, uint64_t position);
  // From here on rows are to come: `covered`, or the end of what is held here where that is behind.
  absl::StatusOr<uint64_t> HeldFrom(uint64_t sequence, uint64_t covered) const;
  // After DecodeSession::Fork and Close.
  absl::Status Fork(uint64_t sequence, uint64_t fork);
  void Close(uint64_t sequence);
  // A full block of a sequence that is all the worker's own, as fetched. REQUIRES: one slice.
  absl::Status AppendPart(uint64_t sequence, absl::Span<const std::byte> part);

 private:
  // Of a range that is held here: sequence, and where the range begins.
  using Place = std::pair<uint64_t, uint64_t>;

  ServedAttention(DecodeSession* session, const HeadShape& heads,
                  std::unique_ptr<LocalAttention> local);

  // Number in local_ of a range; opened when it is new.
  absl::StatusOr<uint64_t> LocalOf(const Place& place);
  absl::Status AttendOwn(uint32_t layer, size_t index, const AttentionRows& rows,
                         const TokenRange& range);
  SessionRows MessageOf(const AttentionRows& rows) const;

  // What the ranges of a step gave.
  struct Partial {
    size_t index = 0;
    TokenRange tokens;
    std::vector<float> output;
    std::vector<float> log_sum_exp;
  };

  DecodeSession* const session_;
  const HeadShape heads_;
  const std::unique_ptr<LocalAttention> local_;
  std::map<Place, uint64_t> places_;
  uint64_t next_number_ = 1;
  std::map<uint64_t, const std::vector<uint32_t>*> tokens_;
  std::vector<Partial> partials_;
};

}  // namespace cairn::replay
