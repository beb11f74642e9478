#include "cache_node/store/write_operations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/segment_digest.h"

namespace cairn::node {
namespace {

constexpr char kTokenUnusable[] = "write token unknown, expired, aborted or another tenant's";

std::string PlaceOf(const SegmentRun& run) {
  return absl::StrCat("block ", run.block, ", group ", run.group, ", slice ", run.slice);
}

// The segments that a run names: the first one's index, after checking that all are there.
absl::StatusOr<size_t> FirstSegment(const PayloadMap& map, const SegmentRun& run) {
  if (run.digests.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(run), ": no digest given"));
  }
  const std::optional<size_t> part = map.FindPart(run.group, run.slice);
  if (!part.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(run), ": the layout has no such part"));
  }
  const uint32_t layers = map.parts()[*part].layers;
  if (run.layer >= layers || run.digests.size() > layers - run.layer) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(run), ": layers ", run.layer, " to ",
                                                   run.layer + run.digests.size() - 1,
                                                   " of a part of ", layers, " layers"));
  }
  return map.parts()[*part].first_segment + run.layer;
}

// What a piece may be: whole segments, or a range within one.
absl::Status CheckLength(const WritePiece& piece, uint64_t segment_bytes, bool* whole) {
  const uint64_t segments = piece.run.digests.size();
  *whole = piece.offset == 0 && piece.length == segments * segment_bytes;
  if (*whole) return absl::OkStatus();
  const uint64_t end = uint64_t{piece.offset} + piece.length;
  if (segments == 1 && piece.length > 0 && end <= segment_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(PlaceOf(piece.run), ", layer ", piece.run.layer, ": bytes ", piece.offset,
                   " to ", end, " of ", segments, " segments of ", segment_bytes,
                   " bytes: send whole segments, or a range within one"));
}

enum class Standing { kFree, kAlreadyIn };

// Whether all segments of the piece are free, or all in with these digests (any, when it is
// unhashed); else why not.
absl::StatusOr<Standing> StandingOf(const BlockEntry& entry, size_t first,
                                    const WritePiece& piece) {
  const SegmentRun& run = piece.run;
  size_t in = 0;
  for (size_t i = 0; i < run.digests.size(); ++i) {
    switch (entry.segments[first + i]) {
      case SegmentState::kEmpty:
        break;
      case SegmentState::kClaimed:
        return absl::AbortedError(absl::StrCat(PlaceOf(run), ", layer ", run.layer + i,
                                               " is being written by another writer"));
      case SegmentState::kWritten:
      case SegmentState::kCommitted:
        if (!piece.unhashed && entry.digests[first + i] != run.digests[i]) {
          return absl::AbortedError(
              absl::StrCat(PlaceOf(run), ", layer ", run.layer + i, " is in with digest ",
                           absl::Hex(entry.digests[first + i], absl::kZeroPad16), ", not ",
                           absl::Hex(run.digests[i], absl::kZeroPad16)));
        }
        ++in;
        break;
    }
  }
  if (in == 0) return Standing::kFree;
  if (in == run.digests.size()) return Standing::kAlreadyIn;
  return absl::AbortedError(absl::StrCat(PlaceOf(run), ": ", in, " of layers ", run.layer, " to ",
                                         run.layer + run.digests.size() - 1,
                                         " are in already: send the others apart"));
}

// A further piece of a segment that is claimed: only its own writer's next one.
absl::Status CheckContinues(const Token& token, const WritePiece& piece, uint64_t writer,
                            const Token::SegmentPlace& place) {
  const std::string where = absl::StrCat(PlaceOf(piece.run), ", layer ", piece.run.layer);
  auto it = token.open.find(place);
  if (it == token.open.end() || it->second.writer != writer || it->second.in_flight) {
    return absl::AbortedError(absl::StrCat(where, " is being written by another writer"));
  }
  if (it->second.digest != piece.run.digests[0]) {
    return absl::AbortedError(absl::StrCat(where, ": its pieces name different digests"));
  }
  if (it->second.next_offset != piece.offset) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": a piece at offset ", piece.offset,
                                                   ", expected ", it->second.next_offset));
  }
  return absl::OkStatus();
}

// Claims one piece of a segment. `*already_in` when it needs no bytes.
absl::Status ClaimPiece(Token* token, BlockEntry* entry, const WritePiece& piece, uint64_t writer,
                        size_t segment, bool* already_in) {
  const Token::SegmentPlace place(piece.run.block, segment);
  if (entry->segments[segment] == SegmentState::kClaimed) {
    absl::Status continues = CheckContinues(*token, piece, writer, place);
    if (!continues.ok()) return continues;
    token->open[place].in_flight = true;
    return absl::OkStatus();
  }
  const absl::StatusOr<Standing> standing = StandingOf(*entry, segment, piece);
  if (!standing.ok()) return standing.status();
  *already_in = *standing == Standing::kAlreadyIn;
  if (*already_in) return absl::OkStatus();
  if (piece.offset != 0) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(piece.run), ", layer ", piece.run.layer,
                                                   ": a first piece at offset ", piece.offset,
                                                   ", expected 0"));
  }
  if (token->open.size() >= TokenTable::kOpenSegmentsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the token has ", token->open.size(),
                     " segments of which only a part is there: finish some first"));
  }
  token->open[place] =
      OpenSegment{.writer = writer, .digest = piece.run.digests[0], .in_flight = true};
  entry->segments[segment] = SegmentState::kClaimed;
  return absl::OkStatus();
}

absl::Status ClaimWhole(BlockEntry* entry, const WritePiece& piece, size_t first,
                        bool* already_in) {
  const absl::StatusOr<Standing> standing = StandingOf(*entry, first, piece);
  if (!standing.ok()) return standing.status();
  *already_in = *standing == Standing::kAlreadyIn;
  if (*already_in) return absl::OkStatus();
  for (size_t i = 0; i < piece.run.digests.size(); ++i) {
    entry->segments[first + i] = SegmentState::kClaimed;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Token*> WriteOperations::UsableToken(const StoreState& state, TenantIndex tenant,
                                                    const TokenId& token, absl::Time now) {
  Token* found = tenant == 0 ? nullptr : state.tokens.Find(token, tenant, now);
  if (found == nullptr || found->name_space->retired ||
      found->name_space->epoch.load(std::memory_order_relaxed) != found->epoch) {
    return absl::AbortedError(kTokenUnusable);
  }
  return found;
}

absl::StatusOr<WriteClaim> WriteOperations::Begin(StoreState* state, TenantIndex tenant,
                                                  const TokenId& token_id, uint64_t writer,
                                                  const WritePiece& piece, absl::Time now) {
  absl::StatusOr<Token*> usable = UsableToken(*state, tenant, token_id, now);
  if (!usable.ok()) return usable.status();
  Token* token = *usable;
  const SegmentRun& run = piece.run;
  if (run.block >= token->blocks.size() || !token->blocks[run.block].reserved) {
    return absl::InvalidArgumentError(absl::StrCat("block ", run.block,
                                                   " was not reserved by this token, which has ",
                                                   token->blocks.size(), " blocks"));
  }
  const PayloadMap& map = token->name_space->map;
  const absl::StatusOr<size_t> first = FirstSegment(map, run);
  if (!first.ok()) return first.status();
  const uint64_t segment_bytes = map.SegmentBytesAt(*first);
  bool whole = false;
  if (absl::Status length = CheckLength(piece, segment_bytes, &whole); !length.ok()) return length;
  if (piece.unhashed && !whole) {
    return absl::InvalidArgumentError(
        absl::StrCat(PlaceOf(run), ": without digests a piece is whole segments"));
  }

  WriteClaim claim;
  claim.unhashed_ = piece.unhashed;
  claim.first_ = map.SegmentAt(*first);
  const TokenBlock& block = token->blocks[run.block];
  if (block.entry == nullptr) {
    if (!block.present) {
      return absl::AbortedError(absl::StrCat(PlaceOf(run), " was removed while it was reserved"));
    }
    claim.already_in_ = true;  // It was written and made room since.
    return claim;
  }
  absl::Status claimed =
      whole ? ClaimWhole(block.entry, piece, *first, &claim.already_in_)
            : ClaimPiece(token, block.entry, piece, writer, *first, &claim.already_in_);
  if (!claimed.ok()) return claimed;
  state->tokens.Renew(token, now, state->options.token_life_max);
  claim.key_ = block.entry->key;
  claim.digests_.assign(run.digests.begin(), run.digests.end());
  if (claim.already_in_) {
    const uint64_t* in = block.entry->digests.get() + *first;
    claim.digests_.assign(in, in + run.digests.size());
    return claim;
  }

  state->Claim(block.entry);
  claim.entry_ = block.entry;
  claim.destination_ = state->slots.Bytes(*block.entry)
                           .subspan(map.SegmentOffset(*first) + piece.offset, piece.length);
  claim.first_segment_ = *first;
  claim.segments_ = run.digests.size();
  claim.whole_ = whole;
  claim.completes_ = whole || piece.offset + uint64_t{piece.length} == segment_bytes;
  claim.segment_bytes_ = state->slots.Bytes(*block.entry)
                             .subspan(map.SegmentOffset(*first), segment_bytes * claim.segments_);
  claim.token_ = token_id;
  claim.block_ = run.block;
  return claim;
}

absl::Status WriteOperations::Verify(const WriteClaim& claim) {
  if (!claim.completes_ || claim.entry_ == nullptr) return absl::OkStatus();
  const size_t bytes = claim.segment_bytes_.size() / claim.segments_;
  for (size_t i = 0; i < claim.segments_; ++i) {
    const SegmentId id = claim.entry_->map->SegmentAt(claim.first_segment_ + i);
    const uint64_t landed =
        !claim.landed_.empty()
            ? claim.landed_[i]
            : SegmentDigest(claim.entry_->key, id, claim.segment_bytes_.subspan(i * bytes, bytes));
    if (landed == claim.digests_[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "block ", claim.block_, ", group ", id.group, ", slice ", id.slice, ", layer ", id.layer,
        ": the bytes have digest ", absl::Hex(landed, absl::kZeroPad16), ", not ",
        absl::Hex(claim.digests_[i], absl::kZeroPad16), " as the writer says"));
  }
  return absl::OkStatus();
}

absl::Status WriteOperations::Finish(StoreState* state, WriteClaim* claim,
                                     const absl::Status& verified, absl::Time now) {
  BlockEntry* entry = claim->entry_;
  CAIRN_CHECK(entry != nullptr && entry->claims > 0);
  Token* token = state->tokens.FindAny(claim->token_, now);
  if (token == nullptr || entry->life == BlockEntry::Life::kGone || entry->token != token ||
      !entry->Readable()) {
    Drop(state, claim);
    return absl::AbortedError(kTokenUnusable);
  }
  if (!verified.ok()) {
    state->counters->digest_mismatches.fetch_add(1, std::memory_order_relaxed);
    Drop(state, claim);
    return verified;
  }
  const Token::SegmentPlace place(claim->block_, claim->first_segment_);
  if (claim->completes_) {
    for (size_t i = 0; i < claim->segments_; ++i) {
      const size_t segment = claim->first_segment_ + i;
      CAIRN_CHECK(entry->segments[segment] == SegmentState::kClaimed);
      entry->segments[segment] = SegmentState::kWritten;
      entry->digests[segment] = claim->digests_[i];
    }
    if (!claim->whole_) CAIRN_CHECK(token->open.erase(place) == 1);
  } else {
    OpenSegment& open = token->open.at(place);
    CAIRN_CHECK(open.in_flight);
    open.next_offset += claim->destination_.size();
    open.in_flight = false;
  }
  state->tokens.Renew(token, now, state->options.token_life_max);
  claim->entry_ = nullptr;
  state->Unclaim(entry);
  return absl::OkStatus();
}

void WriteOperations::Drop(StoreState* state, WriteClaim* claim) {
  BlockEntry* entry = std::exchange(claim->entry_, nullptr);
  CAIRN_CHECK(entry != nullptr && entry->claims > 0);
  if (entry->life != BlockEntry::Life::kGone) {
    for (size_t i = 0; i < claim->segments_; ++i) {
      CAIRN_CHECK(entry->segments[claim->first_segment_ + i] == SegmentState::kClaimed);
      entry->segments[claim->first_segment_ + i] = SegmentState::kEmpty;
    }
    if (!claim->whole_ && entry->token != nullptr) {
      entry->token->open.erase({claim->block_, claim->first_segment_});
    }
  }
  state->Unclaim(entry);
}

void WriteOperations::EndWriter(StoreState* state, const TokenId& token_id, uint64_t writer,
                                absl::Time now) {
  Token* token = state->tokens.FindAny(token_id, now);
  if (token == nullptr) return;
  for (auto it = token->open.begin(); it != token->open.end();) {
    auto current = it++;
    if (current->second.writer != writer || current->second.in_flight) continue;
    const auto [block, segment] = current->first;
    if (BlockEntry* entry = token->blocks[block].entry; entry != nullptr) {
      CAIRN_CHECK(entry->segments[segment] == SegmentState::kClaimed);
      entry->segments[segment] = SegmentState::kEmpty;
    }
    token->open.erase(current);
  }
}

}  // namespace cairn::node
