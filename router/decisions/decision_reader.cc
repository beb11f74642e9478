#include "router/decisions/decision_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "router/decisions/decision_codec.h"

namespace cairn::router {

absl::StatusOr<DecisionReader> DecisionReader::Open(std::istream* in) {
  DecisionReader reader(in);
  if (absl::Status status = reader.frames_.ReadHead(); !status.ok()) return status;
  absl::Status status = absl::InvalidArgumentError("it does not begin with a run");
  if (reader.NextMessage() && reader.message_.has_run()) {
    absl::StatusOr<DecisionRun> run = RunFromMessage(reader.message_.run());
    if (run.ok()) reader.run_ = *std::move(run);
    status = run.status();
  } else if (!reader.damage_.empty()) {
    status = absl::InvalidArgumentError(reader.damage_);
  }
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is damaged in its first record: ", status.message()));
  }
  reader.bytes_used_ = reader.frames_.offset();
  return reader;
}

bool DecisionReader::NextMessage() {
  const std::optional<absl::string_view> payload = frames_.Next();
  if (!payload.has_value()) {
    damage_ = frames_.damage();
    return false;
  }
  if (message_.ParseFromArray(payload->data(), static_cast<int>(payload->size()))) return true;
  damage_ = "a record is no message";
  return false;
}

std::optional<DecisionReader::Record> DecisionReader::Next() {
  while (damage_.empty() && NextMessage()) {
    std::optional<Record> record = Parse();
    if (!damage_.empty()) break;
    bytes_used_ = frames_.offset();
    if (record.has_value()) return record;
  }
  return std::nullopt;
}

std::optional<DecisionReader::Record> DecisionReader::Parse() {
  switch (message_.record_case()) {
    case v1::DecisionRecord::kReplicas: {
      absl::StatusOr<ReplicaNames> names = NamesFromMessage(message_.replicas());
      if (!names.ok()) Damaged(names.status());
      if (names.ok()) names_ = std::make_shared<const ReplicaNames>(*std::move(names));
      return std::nullopt;
    }
    case v1::DecisionRecord::kDecision: {
      absl::StatusOr<Decision> decision = DecisionFromMessage(message_.decision());
      if (!decision.ok()) {
        Damaged(decision.status());
        return std::nullopt;
      }
      if (names_ == nullptr) {
        damage_ = "a decision stands before its replicas' names";
        return std::nullopt;
      }
      decision->names = names_;
      return *std::move(decision);
    }
    case v1::DecisionRecord::kOutcome: {
      const absl::StatusOr<DecisionOutcome> outcome = OutcomeFromMessage(message_.outcome());
      if (outcome.ok()) return *outcome;
      Damaged(outcome.status());
      return std::nullopt;
    }
    case v1::DecisionRecord::kLost:
      return LostDecisions{message_.lost().records()};
    case v1::DecisionRecord::kRun:
      damage_ = "a second run in one file";
      return std::nullopt;
    case v1::DecisionRecord::RECORD_NOT_SET:
      ++records_unknown_;
      return std::nullopt;
  }
  return std::nullopt;
}

void DecisionReader::Damaged(const absl::Status& status) {
  damage_ = absl::StrCat("a record's ", status.message());
}

}  // namespace cairn::router
