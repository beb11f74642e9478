#include "cache_node/decode/sequence/sequence_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache_node/decode/sequence/kv_shape_of.h"
#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr char kUnusable[] = "sequence unknown, ended or another tenant's: open it again";
constexpr char kRemoved[] =
    "the blocks that the sequence rests on were removed, or their namespace retired: open it again";

constexpr uint64_t kSequenceBytes = 2048;  // Itself, and its share of the containers.
constexpr uint64_t kBytesPerBlock = 96;    // Pin, page, slot, key.
constexpr uint64_t kBytesPerToken = 8;     // Behind the prompt.
constexpr uint64_t kBytesPerSegment = 8;

constexpr uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

absl::Status BooksFull(const BookBudget& book) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the books of sequences are full: ", book.bytes(), " of ", book.bytes_max(), " bytes"));
}

// Whether rows can be appended to all groups that a block must have.
absl::Status CheckTakesRows(const PayloadMap& map) {
  for (uint32_t group = 0; group < map.layout().groups.size(); ++group) {
    if (map.layout().groups[group].required == 0) continue;
    if (const auto shape = KvShapeOf(map, group); !shape.ok()) return shape.status();
  }
  return absl::OkStatus();
}

}  // namespace

SequenceTable::SequenceTable(const Options& options, const BlockStore* store,
                             const StoreCounters* counters, const GuardedTime* time,
                             RandomSource* random, const BlockHasher* hasher)
    : options_(options),
      store_(store),
      counters_(counters),
      time_(time),
      random_(random),
      hasher_(hasher),
      pages_(options.pages),
      pins_(options.pins),
      book_(options.book_bytes_max) {}

SequenceTable::~SequenceTable() { CAIRN_CHECK(seals_.empty()); }

uint64_t SequenceTable::Revocations() const {
  return counters_->revocations.load(std::memory_order_acquire);
}

uint64_t SequenceTable::BookBytes(const PayloadMap& map, uint64_t blocks, uint64_t tokens) const {
  return kSequenceBytes + map.segment_count() * kBytesPerSegment + blocks * kBytesPerBlock +
         tokens * kBytesPerToken;
}

absl::Status SequenceTable::Refused(absl::Status status) {
  if (absl::IsResourceExhausted(status)) ++numbers_.refused;
  return status;
}

absl::Status SequenceTable::CheckOpening(const Opening& opening) const {
  if (options_.pages.bytes_max == 0) {
    return absl::FailedPreconditionError(
        "this node runs no sequences: start it with --decode-memory; attention over leased blocks "
        "needs none");
  }
  CAIRN_CHECK(opening.map != nullptr);
  const SequencePrompt& prompt = opening.prompt;
  CAIRN_CHECK(prompt.regions.size() <= kRegionsMax);
  for (size_t i = 0; i < prompt.regions.size(); ++i) {
    const uint32_t first = prompt.regions[i].first_block;
    CAIRN_CHECK(i == 0 ? first == 0 : first > 0 && first <= prompt.keys.size());
  }
  const uint64_t block_tokens = opening.map->layout().block_tokens;
  const uint64_t blocks = uint64_t{opening.first_block} + opening.pins.size();
  if (opening.reserve_tokens > kTokensMax || blocks * block_tokens > kTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sequence of ", blocks, " blocks of ", block_tokens, " tokens and ",
                     opening.reserve_tokens, " reserved ones: at most ", kTokensMax));
  }
  if (opening.idle > absl::Milliseconds(kSequenceIdleMsMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "idle_ms ", absl::ToInt64Milliseconds(opening.idle), ": at most ", kSequenceIdleMsMax));
  }
  return opening.reserve_tokens > 0 ? CheckTakesRows(*opening.map) : absl::OkStatus();
}

absl::StatusOr<SequenceTable::Opened> SequenceTable::Open(Opening opening) {
  if (absl::Status status = CheckOpening(opening); !status.ok()) return status;
  if (records_.size() >= options_.sequences_max) {
    return Refused(absl::ResourceExhaustedError(
        absl::StrCat("this node runs at most ", options_.sequences_max, " sequences")));
  }
  const uint64_t revocations = Revocations();
  const std::optional<uint64_t> epoch = store_->LiveEpoch(opening.fingerprint);
  if (!epoch.has_value()) {
    return absl::FailedPreconditionError("the namespace is unknown or retired: register it");
  }
  const PayloadMap& map = *opening.map;
  const uint64_t pages = CeilDiv(opening.reserve_tokens, map.layout().block_tokens);
  std::optional<BookCharge> shared = book_.Take(opening.prompt.Bytes());
  std::optional<BookCharge> own;
  if (shared.has_value()) {
    own = book_.Take(BookBytes(map, opening.pins.size() + pages, opening.reserve_tokens));
  }
  if (!own.has_value()) {
    return Refused(BooksFull(book_));
  }
  auto reservation = pages_.Reserve(opening.tenant, map.block_bytes(), pages);
  if (!reservation.ok() && DropClosing()) {
    reservation = pages_.Reserve(opening.tenant, map.block_bytes(), pages);
  }
  if (!reservation.ok()) return Refused(reservation.status());
  auto pins = pins_.Add(opening.tenant, std::move(opening.pins));
  if (!pins.ok()) return Refused(pins.status());
  auto common = std::make_shared<Sequence::Common>();
  common->tenant = std::move(opening.tenant);
  common->writer = opening.writer;
  common->fingerprint = opening.fingerprint;
  common->epoch = *epoch;
  common->seal_public = options_.seal_public;
  common->map = &map;
  common->prompt = std::move(opening.prompt);
  common->first_block = opening.first_block;
  common->charge = *std::move(shared);
  auto sequence =
      std::make_unique<Sequence>(random_->New<SequenceId>(), std::move(common), *std::move(pins),
                                 *std::move(reservation), opening.reserve_tokens, *std::move(own));
  if (!sequence->PinsReadable()) return absl::AbortedError(kRemoved);
  const absl::Duration idle =
      opening.idle > absl::ZeroDuration() ? opening.idle : options_.idle_default;
  const Sequence& added = *Add(std::move(sequence), idle, revocations)->sequence;
  ++numbers_.opened;
  last_opened_ = &map;
  return Opened{.id = added.id(),
                .first_token = added.first_token(),
                .covered_tokens = added.covered_tokens(),
                .reserved_tokens = opening.reserve_tokens,
                .idle = idle};
}

SequenceTable::Record* SequenceTable::Add(std::unique_ptr<Sequence> sequence, absl::Duration idle,
                                          uint64_t revocations) {
  auto record = std::make_unique<Record>();
  Record* const added = record.get();
  const SequenceId id = sequence->id();
  added->sequence = std::move(sequence);
  added->idle = idle;
  added->deadline = added->due = time_->Now() + idle;
  added->revocations = revocations;
  Counted(*added->sequence, +1);
  CAIRN_CHECK(due_.emplace(added->due, id).second);
  CAIRN_CHECK(records_.emplace(id, std::move(record)).second);
  return added;
}

void SequenceTable::End(Records::iterator it) {
  Counted(*it->second->sequence, -1);
  CAIRN_CHECK(due_.erase({it->second->due, it->first}) == 1);
  records_.erase(it);
}

// What it may still append is counted as long as it lives, before and after each change.
void SequenceTable::Counted(const Sequence& sequence, int sign) {
  const uint64_t open = sequence.capacity_tokens() - sequence.end_tokens();
  CAIRN_CHECK(sign > 0 || tokens_open_ >= open);
  tokens_open_ += sign > 0 ? open : -open;
}

// Nothing that a sequence rests on was removed since it was last asked.
bool SequenceTable::Readable(Record* record) {
  const uint64_t revocations = Revocations();
  if (record->revocations == revocations) return true;
  const Sequence::Common& common = record->sequence->common();
  if (store_->LiveEpoch(common.fingerprint) != common.epoch) return false;
  if (!record->sequence->PinsReadable()) return false;
  record->revocations = revocations;
  return true;
}

absl::StatusOr<SequenceTable::Record*> SequenceTable::FindRecord(absl::string_view tenant,
                                                                 const SequenceId& id) {
  const auto it = records_.find(id);
  if (it == records_.end() || it->second->sequence->common().tenant != tenant) {
    return absl::AbortedError(kUnusable);
  }
  Record* const record = it->second.get();
  const absl::Time now = time_->Now();
  if (now >= record->deadline) {
    ++numbers_.ended_idle;
    End(it);
    return absl::AbortedError(kUnusable);
  }
  if (!Readable(record)) {
    ++numbers_.ended_removed;
    End(it);
    return absl::AbortedError(kRemoved);
  }
  record->deadline = now + record->idle;
  return record;
}

absl::StatusOr<const Sequence*> SequenceTable::Find(absl::string_view tenant,
                                                    const SequenceId& id) {
  const absl::StatusOr<Record*> record = FindRecord(tenant, id);
  if (!record.ok()) return record.status();
  return (*record)->sequence.get();
}

absl::Status SequenceTable::Append(const Sequence* found, const AppendRows& rows) {
  const auto it = records_.find(found->id());
  CAIRN_CHECK(it != records_.end() && it->second->sequence.get() == found);
  Sequence* const sequence = it->second->sequence.get();
  Counted(*sequence, -1);
  const absl::Status status = sequence->Append(rows);
  Counted(*sequence, +1);
  if (!status.ok()) return status;
  numbers_.appended_rows += uint64_t{rows.rows} * rows.slices;
  QueueSeal(it->second.get());
  return absl::OkStatus();
}

absl::StatusOr<SequenceTable::Forked> SequenceTable::Fork(absl::string_view tenant,
                                                          const SequenceId& id, uint32_t count,
                                                          uint64_t reserve_tokens) {
  CAIRN_CHECK(count >= 1 && count <= kForksMax);
  if (reserve_tokens > kTokensMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("reserve_tokens ", reserve_tokens, ": at most ", kTokensMax));
  }
  const absl::StatusOr<Record*> record = FindRecord(tenant, id);
  if (!record.ok()) return record.status();
  Sequence* const sequence = (*record)->sequence.get();
  const PayloadMap& map = sequence->map();
  if (reserve_tokens > 0) {
    if (absl::Status status = CheckTakesRows(map); !status.ok()) return status;
  }
  if (records_.size() + count > options_.sequences_max) {
    return Refused(absl::ResourceExhaustedError(
        absl::StrCat("this node runs at most ", options_.sequences_max, " sequences")));
  }
  const uint64_t length = sequence->length_tokens();
  const uint64_t block_tokens = map.layout().block_tokens;
  const uint64_t blocks =
      CeilDiv(length + reserve_tokens, block_tokens) - sequence->common().first_block;
  const uint64_t tokens = length + reserve_tokens - sequence->covered_tokens();
  std::vector<BookCharge> charges;
  for (uint32_t i = 0; i < count; ++i) {
    std::optional<BookCharge> charge = book_.Take(BookBytes(map, blocks, tokens));
    if (!charge.has_value()) {
      return Refused(BooksFull(book_));
    }
    charges.push_back(*std::move(charge));
  }
  const uint64_t each = sequence->PagesOfFork(reserve_tokens);
  const uint64_t wanted = count * each + sequence->PagesToBeForked();
  auto pages = pages_.Reserve(tenant, map.block_bytes(), wanted);
  if (!pages.ok() && DropClosing()) pages = pages_.Reserve(tenant, map.block_bytes(), wanted);
  if (!pages.ok()) return Refused(pages.status());
  Forked forked{.ids = {}, .length_tokens = length};
  for (uint32_t i = 0; i < count; ++i) {
    auto fork = sequence->Fork(random_->New<SequenceId>(), reserve_tokens, pages->Split(each),
                               std::move(charges[i]));
    forked.ids.push_back(fork->id());
    Record* const added = Add(std::move(fork), (*record)->idle, (*record)->revocations);
    QueueSeal(added);
    ++numbers_.forked;
  }
  sequence->AddPages(*std::move(pages));
  return forked;
}

absl::StatusOr<uint64_t> SequenceTable::Truncate(absl::string_view tenant, const SequenceId& id,
                                                 uint64_t length_tokens) {
  const absl::StatusOr<Record*> record = FindRecord(tenant, id);
  if (!record.ok()) return record.status();
  Sequence* const sequence = (*record)->sequence.get();
  Counted(*sequence, -1);
  const absl::Status status = sequence->Truncate(length_tokens);
  Counted(*sequence, +1);
  if (!status.ok()) return status;
  return sequence->length_tokens();
}

absl::StatusOr<uint64_t> SequenceTable::ReleaseWindow(absl::string_view tenant,
                                                      const SequenceId& id, uint64_t before_token,
                                                      uint64_t sink_tokens) {
  const absl::StatusOr<Record*> record = FindRecord(tenant, id);
  if (!record.ok()) return record.status();
  return (*record)->sequence->ReleaseWindow(before_token, sink_tokens);
}

size_t SequenceTable::Close(absl::string_view tenant, absl::Span<const SequenceId> ids) {
  size_t closed = 0;
  for (const SequenceId& id : ids) {
    const auto it = records_.find(id);
    if (it == records_.end() || it->second->sequence->common().tenant != tenant) continue;
    Close(it);
    ++closed;
  }
  numbers_.closed += closed;
  return closed;
}

// What it has full is still published, if there is time and room.
void SequenceTable::Close(Records::iterator it) {
  Record* const record = it->second.get();
  const bool readable = Readable(record);
  Counted(*record->sequence, -1);
  CAIRN_CHECK(due_.erase({record->due, it->first}) == 1);
  if (readable && closing_.size() < kClosingMax && record->sequence->KeepForSeals()) {
    record->closing = true;
    record->deadline = time_->Now() + options_.seal_after_close;
    QueueSeal(record);
    closing_.emplace(it->first, std::move(it->second));
  }
  records_.erase(it);
}

bool SequenceTable::DropClosing() {
  const bool any = !closing_.empty();
  closing_.clear();
  return any;
}

void SequenceTable::CloseAll() {
  numbers_.closed += records_.size();
  while (!records_.empty()) End(records_.begin());
  closing_.clear();
  seal_queue_.clear();
  seal_retries_.clear();
  to_sweep_.clear();
}

}  // namespace cairn::node
