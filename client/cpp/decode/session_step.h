// SessionStep: one layer of a batch on its way: which part is asked for which rows, what was
// answered, and what failed.
//
// Parts on different nodes are asked at once; of one node one request of a step at a time, so that
// rows that were cut come in order. What to do about failures is the session's. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/cpp/decode/attend_result.h"
#include "client/cpp/decode/row_sizes.h"
#include "client/cpp/decode/session_part.h"
#include "client/cpp/decode/session_streams.h"
#include "client/cpp/decode/session_types.h"

namespace cairn {

class SessionStep {
 public:
  // Of a sequence: where a range of its tokens is.
  struct Placed {
    TokenRange tokens;  // The last one's end is kOpenEnd.
    // Shared by the sequences that were forked from each other; null: the caller's own.
    std::shared_ptr<SessionPart> part;
  };
  static constexpr uint64_t kOpenEnd = UINT64_MAX;

  enum class Trouble {
    kStreamLost,  // Nobody knows what became of it.
    kRefused,     // By the node, of this item alone.
    kBadAnswer,   // What came is not what was asked for.
    kNotAsked,    // Rows before these failed.
  };
  struct Failure {
    size_t item = 0;
    Trouble trouble = Trouble::kRefused;
    absl::Status status;
  };

  // Borrows both; what rows point at stays until the step is over.
  SessionStep(uint32_t index, const v1::AttentionParameters* parameters, const RowSizes* sizes,
              uint32_t layer, absl::Span<const SessionRows> rows);

  // Asks the places of the rows at `index` that see some of their tokens. INVALID_ARGUMENT when
  // a single row is more than a request may hold.
  absl::Status Plan(size_t index, absl::Span<const Placed> places);

  // Sends what is next and takes in what has come; whether anything is still to come.
  bool Pump(SessionStreams* streams);
  // Until nothing is to come.
  void Run(SessionStreams* streams);

  // What failed since the last call; to be asked again or given up by the caller.
  std::vector<Failure> TakeFailures();
  void AskAgain(size_t item);

  SessionPart* PartOf(size_t item) const { return items_[item].part.get(); }
  const SessionRows& RowsOf(size_t item) const { return rows_[items_[item].rows_index]; }
  // That the part was at when the item was asked.
  uint64_t GenerationOf(size_t item) const { return items_[item].part_generation; }
  uint32_t layer() const { return layer_; }

  // Merges all parts into the rows' outputs, by position. INVALID_ARGUMENT when `own` is not
  // exactly what the caller has to bring. REQUIRES: every item was answered.
  absl::Status Merge(absl::Span<const OwnRows> own) const;

  uint64_t requests() const { return requests_; }
  uint64_t round_trips() const { return round_trips_; }
  uint64_t rows_asked() const { return rows_asked_; }

 private:
  // What one place answers for the rows at an index, all of them.
  struct Piece {
    TokenRange tokens;
    bool own = false;
    PartialRows rows;
    bool failed = false;  // Then later items of it are not sent.
  };
  struct Item {
    size_t rows_index = 0;
    size_t piece = 0;
    uint64_t first_row = 0;
    uint64_t rows = 0;
    std::shared_ptr<SessionPart> part;
    uint64_t part_generation = 0;
    bool appends = false;
    bool answered = false;
  };
  // Of one node: items in order, and the request that is under way.
  struct Lane {
    std::deque<size_t> unsent;
    std::vector<size_t> under_way;
    uint64_t step = 0;
    uint64_t generation = 0;
    uint64_t requests = 0;  // Since the last Run.
  };

  void AddItems(size_t index, size_t piece, uint64_t first_row, bool appends,
                const std::shared_ptr<SessionPart>& part);
  void Enqueue(size_t item);
  AskedRows AskedOf(const Item& item) const;
  void SendNext(DecodeClient* node, SessionStreams* streams, Lane* lane);
  void TakeAnswers(SessionStreams::Opened opened, Lane* lane);
  void TakeAnswer(size_t item, const v1::AttendResult& result);
  void Fail(size_t item, Trouble trouble, const absl::Status& status);
  void FillItem(const Item& item, v1::AttendItem* message) const;
  uint64_t RequestBytesOf(const Item& item) const;

  const uint32_t index_;
  const v1::AttentionParameters* const parameters_;
  const RowSizes* const sizes_;
  const uint32_t layer_;
  const std::vector<SessionRows> rows_;
  std::vector<std::vector<size_t>> pieces_of_;  // By index of rows, by position.
  std::vector<Piece> pieces_;
  std::vector<Item> items_;
  absl::btree_map<DecodeClient*, Lane> lanes_;
  std::vector<Failure> failures_;
  uint64_t requests_ = 0;
  uint64_t round_trips_ = 0;
  uint64_t rows_asked_ = 0;
};

// Ranges that the caller attends over itself, for rows up to `end`.
std::vector<TokenRange> OwnRangesOf(absl::Span<const SessionStep::Placed> places, uint64_t end);

}  // namespace cairn
