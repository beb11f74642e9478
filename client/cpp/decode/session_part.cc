#include "client/cpp/decode/session_part.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn {
namespace {

// A sequence that its node does not hear of in time ends there when it was idle for long enough.
constexpr absl::Duration kCloseTimeout = absl::Milliseconds(500);

}  // namespace

SessionPart::SessionPart(const NamespaceHandle* name_space, const Prompt& prompt,
                         const Clock* clock, const SessionOptions& options, PartWish wish)
    : name_space_(name_space),
      prompt_(prompt),
      clock_(clock),
      options_(options),
      wish_(std::move(wish)) {
  CAIRN_CHECK(!wish_.holders.empty());
  const uint64_t block_tokens = name_space_->block_tokens();
  pinned_ = {wish_.first_block * block_tokens, (wish_.first_block + wish_.blocks) * block_tokens};
}

SessionPart::~SessionPart() { Close(); }

void SessionPart::Close() {
  if (sequence_) (void)node().decode->CloseSequences({&*sequence_, 1}, kCloseTimeout);
  sequence_.reset();
  lease_.reset();
}

const DecodeNode& SessionPart::node() const {
  CAIRN_CHECK(is_open());
  return wish_.holders[holder_];
}

absl::Status SessionPart::Open() { return OpenFrom(0, wish_.holders.size()); }

absl::Status SessionPart::OpenAgain() { return OpenFrom(holder_, wish_.holders.size()); }

absl::Status SessionPart::OpenElsewhere() {
  return OpenFrom(holder_ + 1, wish_.holders.size() - 1);
}

absl::Status SessionPart::OpenFrom(size_t holder, size_t count) {
  Close();
  if (count == 0) return absl::UnavailableError("no other holder is known");
  std::string said;
  absl::Status last;
  for (size_t i = 0; i < count; ++i) {
    holder_ = (holder + i) % wish_.holders.size();
    last = OpenAt(wish_.holders[holder_]);
    if (last.ok() || absl::IsInvalidArgument(last)) return last;
    absl::StrAppend(&said, said.empty() ? "" : "; ", wish_.holders[holder_].decode->target(), ": ",
                    last.message());
  }
  absl::Status all(last.code(), absl::StrCat("blocks ", wish_.first_block, " to ",
                                             wish_.first_block + wish_.blocks, ": ", said));
  last.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { all.SetPayload(url, payload); });
  return all;
}

absl::Status SessionPart::OpenAt(const DecodeNode& node) {
  Close();
  ++generation_;
  return wish_.form == PartForm::kLease ? TakeLease(node) : OpenSequence(node);
}

// Of what was wished for: a holder before may have pinned more.
absl::Status SessionPart::CheckCovers(uint64_t end) const {
  const uint64_t wished =
      (uint64_t{wish_.first_block} + wish_.blocks) * name_space_->block_tokens();
  if (end >= wished) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("holds tokens up to ", end, " of those up to ", wished));
}

absl::Status SessionPart::OpenSequence(const DecodeNode& node) {
  absl::StatusOr<OpenedSequence> opened =
      node.decode->OpenSequence(*name_space_, prompt_,
                                {.first_block = wish_.first_block,
                                 .blocks_max = wish_.blocks,
                                 .reserve_tokens = wish_.reserve_tokens,
                                 .wait = options_.open_wait,
                                 .idle = options_.idle});
  if (!opened.ok()) return opened.status();
  sequence_ = opened->id;
  absl::Status status = CheckCovers(opened->pinned.end);
  // Whoever appends goes on behind what is there.
  if (status.ok() && appends()) pinned_ = opened->pinned;
  if (!status.ok()) Close();
  return status;
}

absl::Status SessionPart::TakeLease(const DecodeNode& node) {
  CAIRN_CHECK(node.cache != nullptr && !appends());
  absl::StatusOr<LookupAnswer> found = node.cache->Lookup(
      *name_space_, {&prompt_, 1}, {.lease_readers = 1, .wait = options_.open_wait});
  if (!found.ok()) return found.status();
  if (!found->namespace_known) {
    return absl::FailedPreconditionError("the namespace is not registered there");
  }
  const uint64_t leased = found->prompts[0].blocks_leased;
  absl::Status status = CheckCovers(leased * name_space_->block_tokens());
  if (status.ok() && !found->lease) status = absl::NotFoundError("gave no lease");
  if (!status.ok()) return status;
  lease_ = std::move(found->lease);
  renew_at_ = clock_->SteadyNow() + lease_->ttl() / 3;
  return absl::OkStatus();
}

std::unique_ptr<SessionPart> SessionPart::WithSequence(const SequenceId& sequence) const {
  auto part = std::make_unique<SessionPart>(name_space_, prompt_, clock_, options_, wish_);
  part->pinned_ = pinned_;
  part->holder_ = holder_;
  part->sequence_ = sequence;
  return part;
}

void SessionPart::FillTarget(v1::AttendItem* item) const {
  CAIRN_CHECK(is_open());
  if (sequence_) {
    item->set_sequence(std::string(sequence_->view()));
    return;
  }
  v1::LeasedBlocks* leased = item->mutable_leased();
  leased->set_lease(std::string(lease_->id().view()));
  leased->set_first_block(wish_.first_block);
  leased->set_blocks(wish_.blocks);
}

void SessionPart::KeepAlive() {
  if (!lease_ || clock_->SteadyNow() < renew_at_) return;
  (void)lease_->Renew(absl::ZeroDuration());
  renew_at_ = clock_->SteadyNow() + lease_->ttl() / 3;
}

}  // namespace cairn
