#include "client/cpp/decode/decode_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

constexpr uint64_t kOpenEnd = SessionStep::kOpenEnd;

absl::Status WrongPart(size_t index, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("part ", index, ": ", what));
}

absl::Status CheckParts(absl::Span<const PartWish> parts, const Prompt& prompt) {
  uint64_t covered = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PartWish& part = parts[i];
    const bool last = i + 1 == parts.size();
    if (part.first_block != covered) {
      return WrongPart(i, absl::StrCat("begins at block ", part.first_block, " where those before ",
                                       "end at ", covered, "; each block is of one part"));
    }
    covered += part.blocks;
    if (covered > prompt.block_count()) {
      return WrongPart(i, absl::StrCat("ends at block ", covered, " of a prompt of ",
                                       prompt.block_count(), " full ones"));
    }
    const bool appends = part.reserve_tokens > 0;
    if (part.blocks == 0 && !(last && appends)) {
      return WrongPart(i, "has no blocks, which only one that appends may, at the end");
    }
    if (appends && (!last || part.form != PartForm::kSequence || part.holders.empty())) {
      return WrongPart(i, "reserves tokens, which only a sequence of a node can, at the end");
    }
    for (const DecodeNode& node : part.holders) {
      if (node.decode != nullptr && (node.cache != nullptr || part.form != PartForm::kLease)) {
        continue;
      }
      return WrongPart(i, "a holder lacks a client; leases need both");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DecodeSession>> DecodeSession::Make(
    const NamespaceHandle& name_space, absl::Span<const v1::AttentionParameters> parameters,
    const ClientParts& parts, const SessionOptions& options) {
  if (parameters.empty()) return absl::InvalidArgumentError("no parameters: nothing can be asked");
  std::vector<RowSizes> sizes;
  for (const v1::AttentionParameters& one : parameters) {
    absl::StatusOr<RowSizes> of_one = RowSizesOf(name_space.payload_map(), one);
    if (!of_one.ok()) return of_one.status();
    sizes.push_back(*of_one);
  }
  return std::unique_ptr<DecodeSession>(new DecodeSession(
      name_space, {parameters.begin(), parameters.end()}, std::move(sizes), parts, options));
}

DecodeSession::DecodeSession(const NamespaceHandle& name_space,
                             std::vector<v1::AttentionParameters> parameters,
                             std::vector<RowSizes> sizes, const ClientParts& parts,
                             const SessionOptions& options)
    : name_space_(name_space),
      parameters_(parameters),
      sizes_(std::move(sizes)),
      parts_(parts),
      options_(options),
      streams_(name_space.fingerprint(), std::move(parameters), options.stream, parts.clock) {}

DecodeSession::~DecodeSession() = default;

DecodeSession::Sequence& DecodeSession::At(uint64_t sequence) {
  const auto found = sequences_.find(sequence);
  CAIRN_CHECK_MSG(found != sequences_.end(), absl::StrCat("sequence ", sequence));
  return found->second;
}

const DecodeSession::Sequence& DecodeSession::At(uint64_t sequence) const {
  const auto found = sequences_.find(sequence);
  CAIRN_CHECK_MSG(found != sequences_.end(), absl::StrCat("sequence ", sequence));
  return found->second;
}

absl::Status DecodeSession::Open(uint64_t number, const Prompt& prompt,
                                 absl::Span<const PartWish> parts) {
  if (sequences_.contains(number)) {
    return absl::AlreadyExistsError(absl::StrCat("sequence ", number, " is open already"));
  }
  if (absl::Status status = CheckParts(parts, prompt); !status.ok()) return status;
  Sequence sequence;
  uint64_t end = 0;
  for (const PartWish& wish : parts) {
    const uint64_t begin = uint64_t{wish.first_block} * name_space_.block_tokens();
    end = wish.reserve_tokens > 0 ? kOpenEnd
                                  : begin + uint64_t{wish.blocks} * name_space_.block_tokens();
    SessionStep::Placed place{.tokens = {begin, end}, .part = nullptr};
    if (!wish.holders.empty()) {
      place.part =
          std::make_shared<SessionPart>(&name_space_, prompt, parts_.clock, options_, wish);
      if (absl::Status status = place.part->Open(); !status.ok()) return status;
      ++counters_.parts_opened;
    }
    sequence.places.push_back(std::move(place));
  }
  if (end != kOpenEnd) sequence.places.push_back({.tokens = {end, kOpenEnd}, .part = nullptr});
  sequences_.emplace(number, std::move(sequence));
  return absl::OkStatus();
}

absl::Status DecodeSession::Fork(uint64_t number, absl::Span<const uint64_t> forks,
                                 uint64_t reserve_tokens) {
  const Sequence original = At(number);
  for (const uint64_t fork : forks) {
    if (!sequences_.contains(fork)) continue;
    return absl::AlreadyExistsError(absl::StrCat("sequence ", fork, " is open already"));
  }
  const std::shared_ptr<SessionPart>& tail = original.places.back().part;
  std::vector<SequenceId> ids;
  if (tail != nullptr) {
    if (!tail->is_open()) {
      return absl::AbortedError(absl::StrCat("sequence ", number, ": its tail is lost"));
    }
    absl::StatusOr<ForkedSequences> forked = tail->node().decode->ForkSequence(
        *tail->sequence(), static_cast<uint32_t>(forks.size()), reserve_tokens);
    if (!forked.ok()) return forked.status();
    ids = std::move(forked->ids);
  }
  for (size_t i = 0; i < forks.size(); ++i) {
    Sequence fork = original;
    if (tail != nullptr) fork.places.back().part = tail->WithSequence(ids[i]);
    sequences_.emplace(forks[i], std::move(fork));
  }
  return absl::OkStatus();
}

absl::Status DecodeSession::Truncate(uint64_t number, uint64_t length) {
  Sequence& sequence = At(number);
  const SessionStep::Placed& tail = sequence.places.back();
  const uint64_t least = tail.part != nullptr ? tail.part->pinned().end : tail.tokens.begin;
  if (length < least) {
    return absl::InvalidArgumentError(absl::StrCat("sequence ", number, ": cannot end at ", length,
                                                   ", before ", least, ", where its prefix ends"));
  }
  sequence.rows_end = std::min(sequence.rows_end, length);
  // One that is lost comes back without them.
  if (tail.part == nullptr || !tail.part->is_open()) return absl::OkStatus();
  const absl::StatusOr<uint64_t> left =
      tail.part->node().decode->TruncateSequence(*tail.part->sequence(), length);
  if (!left.ok()) return left.status();
  if (*left <= length) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("sequence ", number, ": the node left ", *left,
                                          " tokens where ", length, " were asked for"));
}

absl::Status DecodeSession::ReleaseWindow(uint64_t number, uint64_t before, uint64_t sink_tokens) {
  for (const SessionStep::Placed& place : At(number).places) {
    if (place.part == nullptr || !place.part->is_open() || place.part->sequence() == nullptr) {
      continue;
    }
    // A part that forks share ends with the last of them.
    if (place.tokens.begin >= before || !place.part->appends()) continue;
    const absl::Status status =
        place.part->node()
            .decode->ReleaseWindow(*place.part->sequence(), before, sink_tokens)
            .status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void DecodeSession::Close(uint64_t sequence) { sequences_.erase(sequence); }

uint64_t DecodeSession::CoveredTokens(uint64_t sequence) const {
  const SessionStep::Placed& tail = At(sequence).places.back();
  return tail.part != nullptr ? tail.part->pinned().end : tail.tokens.begin;
}

std::vector<TokenRange> DecodeSession::OwnTokens(uint64_t sequence, uint64_t end) const {
  return OwnRangesOf(At(sequence).places, end);
}

bool DecodeSession::TailIsOwn(uint64_t sequence) const {
  return At(sequence).places.back().part == nullptr;
}

std::vector<std::string> DecodeSession::Places(uint64_t sequence) const {
  std::vector<std::string> lines;
  for (const SessionStep::Placed& place : At(sequence).places) {
    std::string line = absl::StrCat("tokens ", place.tokens.begin, " to ");
    absl::StrAppend(&line,
                    place.tokens.end == kOpenEnd ? "the end" : absl::StrCat(place.tokens.end));
    if (place.part == nullptr) {
      absl::StrAppend(&line, ": held by the worker");
    } else if (!place.part->is_open()) {
      absl::StrAppend(&line, ": lost");
    } else {
      absl::StrAppend(&line, ": at ", place.part->node().decode->target(),
                      place.part->form() == PartForm::kLease ? ", leased" : ", in a sequence",
                      place.part->appends() ? " that is appended to" : "");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

absl::Status DecodeSession::CheckRows(uint32_t parameters, uint32_t layer,
                                      absl::Span<const SessionRows> rows) {
  if (parameters >= parameters_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameters ", parameters, " of ", parameters_.size()));
  }
  if (layer >= sizes_[parameters].layers) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer ", layer, " of ", sizes_[parameters].layers));
  }
  for (const SessionRows& one : rows) {
    if (!sequences_.contains(one.sequence)) {
      return absl::NotFoundError(absl::StrCat("sequence ", one.sequence, " is not open"));
    }
    const bool complete =
        one.rows > 0 && one.queries != nullptr && one.output != nullptr &&
        one.log_sum_exp != nullptr && (one.tokens.empty() || one.tokens.size() == one.rows) &&
        (one.keys == nullptr || one.values != nullptr || sizes_[parameters].value_bytes == 0);
    if (complete) continue;
    return absl::InvalidArgumentError(absl::StrCat("sequence ", one.sequence, ": ", one.rows,
                                                   " rows with a pointer missing, or ",
                                                   one.tokens.size(), " tokens for them"));
  }
  return absl::OkStatus();
}

absl::Status DecodeSession::Plan(size_t index, const SessionRows& rows, SessionStep* step) {
  const std::vector<SessionStep::Placed>& places = At(rows.sequence).places;
  for (const SessionStep::Placed& place : places) {
    if (place.part == nullptr) continue;
    if (place.part->is_open()) {
      place.part->KeepAlive();
    } else if (place.tokens.begin < rows.position + rows.rows) {
      // Lost in a step of another sequence that shares it.
      NoteLost(rows.sequence, {place.tokens.begin, std::min(place.tokens.end, rows.position)},
               /*again=*/false);
    }
  }
  if (!lost_.empty()) return absl::OkStatus();
  return step->Plan(index, places);
}

absl::StatusOr<uint64_t> DecodeSession::Send(uint32_t parameters, uint32_t layer,
                                             absl::Span<const SessionRows> rows) {
  if (absl::Status status = CheckRows(parameters, layer, rows); !status.ok()) return status;
  auto step = std::make_unique<SessionStep>(parameters, &parameters_[parameters],
                                            &sizes_[parameters], layer, rows);
  for (size_t index = 0; index < rows.size(); ++index) {
    absl::Status status = Plan(index, rows[index], step.get());
    if (!status.ok()) return status;
    if (parameters > 0 || layer > 0) continue;
    uint64_t& end = At(rows[index].sequence).rows_end;
    const uint64_t rows_end = rows[index].position + rows[index].rows;
    const uint64_t seen_before = std::min(end, rows_end);
    if (seen_before > rows[index].position) {
      counters_.recomputed_tokens += seen_before - rows[index].position;
    }
    end = std::max(end, rows_end);
  }
  if (!lost_.empty()) return LostStatus();
  ++counters_.steps;
  (void)step->Pump(&streams_);
  const uint64_t number = next_step_++;
  under_way_.emplace(number, std::move(step));
  return number;
}

absl::Status DecodeSession::Attend(uint32_t parameters, uint32_t layer,
                                   absl::Span<const SessionRows> rows,
                                   absl::Span<const OwnRows> own) {
  const absl::StatusOr<uint64_t> step = Send(parameters, layer, rows);
  if (!step.ok()) return step.status();
  return Receive(*step, own);
}

std::vector<LostTokens> DecodeSession::TakeLost() {
  std::sort(lost_.begin(), lost_.end(), [](const LostTokens& a, const LostTokens& b) {
    return std::pair(a.sequence, a.tokens.begin) < std::pair(b.sequence, b.tokens.begin);
  });
  return std::exchange(lost_, {});
}

void DecodeSession::TakeOver(const LostTokens& lost) {
  for (SessionStep::Placed& place : At(lost.sequence).places) {
    if (place.tokens.begin != lost.tokens.begin || place.part == nullptr) continue;
    CAIRN_CHECK(!place.part->is_open() && !lost.again);
    place.part = nullptr;
    return;
  }
}

SessionCounters DecodeSession::counters() const {
  SessionCounters counters = counters_;
  counters.bytes_sent = streams_.bytes_sent();
  counters.bytes_received = streams_.bytes_received();
  return counters;
}

}  // namespace cairn
