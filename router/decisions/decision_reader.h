// DecisionReader: the records of a file of decisions, in the order in which they were written.
//
// Uses what stands before the first damage, and says where that is. Nothing in a file is believed:
// a record that no router writes is damage too. Kinds of records that it does not know are counted
// and passed over. Borrows the stream. Not thread-safe.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "cairn/v1/decision.pb.h"
#include "router/decisions/decision.h"
#include "router/decisions/decision_frames.h"

namespace cairn::router {

// So many decisions and outcomes are not in the file.
struct LostDecisions {
  uint64_t records = 0;
};

class DecisionReader {
 public:
  using Record = std::variant<Decision, DecisionOutcome, LostDecisions>;

  // INVALID_ARGUMENT for what is no file of decisions, of a later version, or damaged before its
  // first record is over.
  static absl::StatusOr<DecisionReader> Open(std::istream* in);

  const DecisionRun& run() const { return run_; }

  // Nothing at the end, of the file or of what is sound in it. A decision has its names.
  std::optional<Record> Next();

  uint64_t records_unknown() const { return records_unknown_; }
  // After the end: what was used of the file, and why no more; empty where that is all of it.
  uint64_t bytes_used() const { return bytes_used_; }
  const std::string& damage() const { return damage_; }

 private:
  explicit DecisionReader(std::istream* in) : frames_(in) {}

  // False where there is none, or damage.
  bool NextMessage();
  // Nothing for a record that is none of Record's, and for damage.
  std::optional<Record> Parse();
  void Damaged(const absl::Status& status);

  DecisionFrames frames_;
  v1::DecisionRecord message_;
  DecisionRun run_;
  std::shared_ptr<const ReplicaNames> names_;
  uint64_t records_unknown_ = 0;
  uint64_t bytes_used_ = 0;
  std::string damage_;
};

}  // namespace cairn::router
