// SequenceTable: what happens in the background, and what is counted.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "common/base/check.h"

namespace cairn::node {

void SequenceTable::Tick() {
  const absl::Time now = time_->Now();
  for (size_t i = 0; i < kStepsPerTick; ++i) {
    if (due_.empty() || due_.begin()->first > now) break;
    const auto it = records_.find(due_.begin()->second);
    CAIRN_CHECK(it != records_.end());
    Record& record = *it->second;
    if (now >= record.deadline) {
      ++numbers_.ended_idle;
      End(it);
      continue;
    }
    due_.erase(due_.begin());
    record.due = record.deadline;
    CAIRN_CHECK(due_.emplace(record.due, it->first).second);
  }
  SweepRevoked(kStepsPerTick);
  absl::erase_if(closing_, [now](const auto& closing) { return now >= closing.second->deadline; });
  TrimSeals();
}

// Sequences that ended leave their places in the queues, which a mover that does not come would let
// grow.
void SequenceTable::TrimSeals() {
  const size_t usual = 2 * (records_.size() + closing_.size()) + kStepsPerTick;
  if (seal_queue_.size() + seal_retries_.size() <= usual) return;
  std::erase_if(seal_queue_, [this](const auto& id) { return FindForSeals(id) == nullptr; });
  std::erase_if(seal_retries_,
                [this](const auto& retry) { return FindForSeals(retry.second) == nullptr; });
}

// Ends sequences that nobody asks for and whose blocks were removed.
void SequenceTable::SweepRevoked(size_t steps) {
  if (to_sweep_.empty()) {
    const uint64_t revocations = Revocations();
    if (revocations == swept_) return;
    swept_ = revocations;
    for (const auto& [id, record] : records_) to_sweep_.push_back(id);
  }
  for (size_t i = 0; i < steps && !to_sweep_.empty(); ++i) {
    const auto it = records_.find(to_sweep_.front());
    to_sweep_.pop_front();
    if (it == records_.end() || Readable(it->second.get())) continue;
    ++numbers_.ended_removed;
    End(it);
  }
}

SequenceTable::Record* SequenceTable::FindForSeals(const SequenceId& id) {
  if (const auto it = records_.find(id); it != records_.end()) return it->second.get();
  const auto it = closing_.find(id);
  return it == closing_.end() ? nullptr : it->second.get();
}

void SequenceTable::QueueSeal(Record* record) {
  if (record->seal_queued || !record->sequence->HasSeal()) return;
  record->seal_queued = true;
  seal_queue_.push_back(record->sequence->id());
}

std::vector<SealTask> SequenceTable::TakeSeals(size_t max) {
  const absl::Time now = time_->Now();
  while (!seal_retries_.empty() && seal_retries_.front().first <= now) {
    seal_queue_.push_back(seal_retries_.front().second);
    seal_retries_.pop_front();
  }
  std::vector<SealTask> tasks;
  while (tasks.size() < max && seals_.size() < options_.seals_max && !seal_queue_.empty()) {
    Record* const record = FindForSeals(seal_queue_.front());
    seal_queue_.pop_front();
    if (record == nullptr) continue;
    record->seal_queued = false;
    SealTask task;
    if (TakeSeal(record, &task)) {
      tasks.push_back(std::move(task));
    } else if (record->closing) {
      closing_.erase(SequenceId(record->sequence->id()));
    }
  }
  return tasks;
}

bool SequenceTable::TakeSeal(Record* record, SealTask* task) {
  Sequence* const sequence = record->sequence.get();
  if (!sequence->HasSeal()) return false;
  if (record->closing ? record->revocations != Revocations() : !Readable(record)) return false;
  // Nobody writes to one that is closed.
  const uint64_t copies = record->closing ? 0 : 1;
  auto spare = pages_.Reserve(sequence->common().tenant, sequence->map().block_bytes(), copies);
  if (!spare.ok()) {
    ++numbers_.seals_no_room;
    RetrySeal(record);
    return false;
  }
  auto seal = std::make_unique<SequenceSeal>();
  if (!sequence->BeginSeal(*hasher_, seal.get(), task)) return false;
  seal->spare = *std::move(spare);
  task->revocations = &counters_->revocations;
  task->revocations_then = record->revocations;
  task->serial = ++seal_serial_;
  seals_.emplace(task->serial, std::move(seal));
  return true;
}

void SequenceTable::RetrySeal(Record* record) {
  if (record->seal_queued) return;
  record->seal_queued = true;
  seal_retries_.emplace_back(time_->Now() + options_.seal_retry_after, record->sequence->id());
}

void SequenceTable::FinishSeal(uint64_t serial, SealOutcome outcome) {
  const auto it = seals_.find(serial);
  CAIRN_CHECK(it != seals_.end());
  ++numbers_.seals[static_cast<size_t>(outcome)];
  const std::unique_ptr<SequenceSeal> seal = std::move(it->second);
  seals_.erase(it);
  if (seal->sequence == nullptr) return;
  Record* const record = FindForSeals(seal->sequence->id());
  CAIRN_CHECK(record != nullptr);
  const bool stale = seal->stale;
  record->sequence->EndSeal(outcome);
  const bool again =
      !stale && (outcome == SealOutcome::kInProgress || outcome == SealOutcome::kNoSpace);
  if (record->closing && (again || !record->sequence->HasSeal())) {
    closing_.erase(SequenceId(record->sequence->id()));
  } else if (again) {
    RetrySeal(record);
  } else {
    QueueSeal(record);
  }
}

DecodeNumbers SequenceTable::Numbers() const {
  DecodeNumbers numbers = numbers_;
  numbers.bytes_max = pages_.bytes_max();
  numbers.bytes_used = pages_.used_bytes();
  numbers.bytes_reserved = pages_.reserved_bytes();
  numbers.bytes_mapped = pages_.mapped_bytes();
  numbers.pinned_bytes = pins_.bytes();
  numbers.book_bytes = book_.bytes();
  numbers.tokens_reserved = tokens_open_;
  if (last_opened_ != nullptr) {
    numbers.tokens_free =
        pages_.PagesFree(last_opened_->block_bytes()) * last_opened_->layout().block_tokens;
  }
  numbers.running = records_.size();
  numbers.closing = closing_.size();
  numbers.seals_under_way = seals_.size();
  return numbers;
}

absl::Status SequenceTable::Audit() const {
  if (absl::Status status = pages_.Audit(); !status.ok()) return status;
  if (absl::Status status = pins_.Audit(); !status.ok()) return status;
  uint64_t open = 0, reserved = 0;
  for (const auto& [id, record] : records_) {
    const Sequence& sequence = *record->sequence;
    if (absl::Status status = sequence.Audit(); !status.ok()) return status;
    open += sequence.capacity_tokens() - sequence.end_tokens();
    reserved += sequence.reserved_pages() * sequence.map().block_bytes();
    if (record->due > record->deadline || !due_.contains({record->due, id})) {
      return absl::InternalError("a sequence would not end when it is idle");
    }
  }
  for (const auto& [serial, seal] : seals_) {
    reserved += seal->spare.pages() * seal->page.bytes().size();
  }
  if (open != tokens_open_)
    return absl::InternalError("tokens that may be appended are miscounted");
  if (reserved != pages_.reserved_bytes()) return absl::InternalError("a reservation is nobody's");
  if (due_.size() != records_.size()) return absl::InternalError("idle times are miscounted");
  if (records_.empty() && closing_.empty() && seals_.empty()) {
    if (pages_.used_bytes() != 0) return absl::InternalError("pages are left");
    if (pins_.size() != 0) return absl::InternalError("pins are left");
    if (book_.bytes() != 0) return absl::InternalError("books are left");
  }
  return absl::OkStatus();
}

}  // namespace cairn::node
