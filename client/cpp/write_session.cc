#include "client/cpp/write_session.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/local/staged_write.h"
#include "client/cpp/node_link.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

// A commit's message stays far under kMessageBytesMax.
constexpr size_t kPiecesInCommitMax = 4096;
constexpr size_t kDigestsInCommitMax = size_t{64} << 10;
static_assert(kPiecesInCommitMax <= kPiecesPerCommitMax);
static_assert(kPiecesInCommitMax * 48 + kDigestsInCommitMax * 8 < kMessageBytesMax);

// A destructor does not wait longer for a node that may be gone.
constexpr absl::Duration kAbortQuietlyTimeout = absl::Seconds(1);

// A slice that borrows costs as much as copying so many bytes.
constexpr uint64_t kBorrowBytesMin = 8 << 10;

FramePacker::Payload PayloadOf(const SegmentSelection& selection, const WriteOptions& options) {
  bool large = options.source_stays_readable;
  for (size_t i = 0; i < selection.segment_count() && large; ++i) {
    large = selection.At(i).bytes >= kBorrowBytesMin;
  }
  return large ? FramePacker::Payload::kNamed : FramePacker::Payload::kCopied;
}

}  // namespace

WriteSession::WriteSession(NodeLink* link, const NamespaceHandle& name_space,
                           Reservation reservation)
    : link_(link), name_space_(name_space), reservation_(std::move(reservation)) {
  CAIRN_CHECK(reservation_.keys.size() == reservation_.answers.size());
  for (uint32_t i = 0; i < reservation_.answers.size(); ++i) {
    if (reservation_.answers[i].outcome() == v1::RESERVE_OUTCOME_RESERVED) reserved_.push_back(i);
  }
  CAIRN_CHECK(reservation_.token.has_value() == !reserved_.empty());
}

WriteSession::~WriteSession() { AbortQuietly(); }

WriteSession::WriteSession(WriteSession&& other) noexcept
    : link_(std::exchange(other.link_, nullptr)),
      name_space_(other.name_space_),
      reservation_(std::move(other.reservation_)),
      reserved_(std::move(other.reserved_)),
      uncommitted_(std::move(other.uncommitted_)),
      ended_(other.ended_) {}

WriteSession& WriteSession::operator=(WriteSession&& other) noexcept {
  if (this == &other) return *this;
  AbortQuietly();
  link_ = std::exchange(other.link_, nullptr);
  name_space_ = other.name_space_;
  reservation_ = std::move(other.reservation_);
  reserved_ = std::move(other.reserved_);
  uncommitted_ = std::move(other.uncommitted_);
  ended_ = other.ended_;
  return *this;
}

WriteSession::Ticket WriteSession::ticket() const {
  CAIRN_CHECK(reservation_.token.has_value());
  return {*reservation_.token, reservation_.keys, reserved_};
}

absl::StatusOr<std::vector<FramePacker::Block>> WriteSession::BlocksOf(
    absl::Span<const uint32_t> indexes) const {
  if (!reservation_.token) {
    return absl::FailedPreconditionError("this session reserved no block: nothing can be written");
  }
  std::vector<FramePacker::Block> blocks;
  absl::flat_hash_set<uint32_t> seen;
  for (const uint32_t index : indexes) {
    if (!std::binary_search(reserved_.begin(), reserved_.end(), index)) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", index, " is not one that this session reserved"));
    }
    if (!seen.insert(index).second) {
      return absl::InvalidArgumentError(absl::StrCat("block ", index, " is named twice"));
    }
    blocks.push_back({index, reservation_.keys[index]});
  }
  return blocks;
}

absl::StatusOr<WriteResult> WriteSession::WriteAll(SegmentSource source,
                                                   const WriteOptions& options) {
  return Write(reserved_, {}, source, options);
}

absl::StatusOr<WriteResult> WriteSession::Write(absl::Span<const uint32_t> blocks,
                                                absl::Span<const PartLayers> parts,
                                                SegmentSource source, const WriteOptions& options) {
  CAIRN_CHECK(link_ != nullptr);
  const absl::StatusOr<std::vector<FramePacker::Block>> named = BlocksOf(blocks);
  if (!named.ok()) return named.status();
  const absl::StatusOr<SegmentSelection> selection =
      SegmentSelection::Make(name_space_.payload_map(), parts);
  if (!selection.ok()) return selection.status();

  WriteResult result;
  size_t first = 0;  // What was answered is not sent again.
  absl::Duration timeout = link_->DataTimeout(options.timeout);
  if (LocalLink* local = link_->local(); local != nullptr) {
    const absl::Time deadline = local->Deadline(timeout);
    first = WriteThroughStaging(local, *reservation_.token, *selection, *named, source, first,
                                deadline, [&](size_t item, uint64_t digest) {
                                  RememberItem(*selection, *named, item, digest, &result);
                                });
    timeout = local->LeftFor(deadline);
    if (first == named->size() * selection->segment_count()) return result;
  }
  const RetryRules rules{.idempotent = true, .wait_when_exhausted = options.wait_when_exhausted};
  const absl::Status status =
      link_->runner().Run(timeout, rules, [&](const CallRunner::Attempt& attempt) {
        FramePacker packer(&*selection, *named, source, first, PayloadOf(*selection, options));
        WriteStream stream(link_, *reservation_.token, attempt.remaining, &packer);
        absl::Status ran = stream.Run();
        RememberWritten(packer, *selection, *named, first, stream, &result);
        first = stream.items_answered();
        return ran;
      });
  if (!status.ok()) return status;
  return result;
}

absl::StatusOr<StagedBlocks> WriteSession::Stage(absl::Span<const uint32_t> blocks) {
  CAIRN_CHECK(link_ != nullptr);
  const absl::StatusOr<std::vector<FramePacker::Block>> named = BlocksOf(blocks);
  if (!named.ok()) return named.status();
  if (link_->local() == nullptr) return absl::UnavailableError("this client uses no local path");
  const absl::Time deadline = link_->local()->Deadline(link_->ControlTimeout({}));
  return StagedBlocks::Make(link_->local(), name_space_.payload_map(), blocks, deadline);
}

absl::StatusOr<WriteResult> WriteSession::WriteStaged(StagedBlocks staged) {
  CAIRN_CHECK(link_ != nullptr && reservation_.token.has_value());
  const PayloadMap& map = name_space_.payload_map();
  const absl::StatusOr<SegmentSelection> all = SegmentSelection::Make(map, {});
  CAIRN_CHECK_OK(all.status());
  std::vector<FramePacker::Block> blocks;
  for (size_t i = 0; i < staged.size(); ++i) {
    blocks.push_back({staged.index(i), reservation_.keys[staged.index(i)]});
  }
  WriteResult result;
  const absl::Time deadline = link_->local()->Deadline(link_->DataTimeout({}));
  const absl::Status status = staged.Land(
      *reservation_.token, map, deadline, [&](size_t block, size_t segment, uint64_t digest) {
        RememberItem(*all, blocks, block * map.segment_count() + segment, digest, &result);
      });
  if (!status.ok()) return status;
  return result;
}

void WriteSession::RememberWritten(const FramePacker& packer, const SegmentSelection& selection,
                                   absl::Span<const FramePacker::Block> blocks, size_t first,
                                   const WriteStream& stream, WriteResult* result) {
  result->errors_total += stream.errors_total();
  for (const SegmentError& error : stream.errors()) {
    if (result->errors.size() < kSegmentErrorsMax) result->errors.push_back(error);
  }
  for (size_t item = first; item < stream.items_answered(); ++item) {
    if (stream.Refused(item)) continue;
    RememberItem(selection, blocks, item, packer.DigestOf(item), result);
  }
}

void WriteSession::RememberItem(const SegmentSelection& selection,
                                absl::Span<const FramePacker::Block> blocks, size_t item,
                                uint64_t digest, WriteResult* result) {
  const SegmentSelection::Segment& segment = selection.At(item % selection.segment_count());
  const SegmentId& id = segment.id;
  const uint32_t block = blocks[item / selection.segment_count()].index;
  ++result->segments_written;
  result->bytes_written += segment.bytes;
  Run* last = uncommitted_.empty() ? nullptr : &uncommitted_.back();
  if (last == nullptr || last->block != block || last->first.group != id.group ||
      last->first.slice != id.slice || last->first.layer + last->digests.size() != id.layer) {
    uncommitted_.push_back({.block = block, .first = id, .digests = {}});
    last = &uncommitted_.back();
  }
  last->digests.push_back(digest);
}

absl::StatusOr<CommitResult> WriteSession::Commit(absl::Duration timeout) {
  CAIRN_CHECK(link_ != nullptr);
  if (!reservation_.token) {
    return absl::FailedPreconditionError("this session reserved no block: nothing to commit");
  }
  CommitResult result;
  size_t done = 0;
  do {
    size_t count = 0;
    size_t digests = 0;
    while (done + count < uncommitted_.size() && count < kPiecesInCommitMax &&
           (count == 0 ||
            digests + uncommitted_[done + count].digests.size() <= kDigestsInCommitMax)) {
      digests += uncommitted_[done + count].digests.size();
      ++count;
    }
    if (absl::Status status = CommitBatch(done, count, timeout, &result); !status.ok()) {
      uncommitted_.erase(uncommitted_.begin(), uncommitted_.begin() + static_cast<ptrdiff_t>(done));
      return status;
    }
    done += count;
  } while (done < uncommitted_.size());
  uncommitted_.clear();
  ended_ = result.complete;
  return result;
}

absl::Status WriteSession::CommitBatch(size_t first, size_t count, absl::Duration timeout,
                                       CommitResult* result) {
  v1::CommitRequest request;
  request.set_token(std::string(reservation_.token->view()));
  for (size_t i = 0; i < count; ++i) {
    const Run& run = uncommitted_[first + i];
    v1::Piece* piece = request.add_pieces();
    piece->set_block(run.block);
    piece->set_group(run.first.group);
    piece->set_slice(run.first.slice);
    piece->set_layer(run.first.layer);
    piece->mutable_digests()->Add(run.digests.begin(), run.digests.end());
  }
  v1::CommitResponse response;
  const absl::Status status =
      link_->Call(&v1::CacheNode::Stub::Commit, request, timeout, {}, &response);
  if (!status.ok()) return status;
  result->blocks_present = response.blocks_present();
  result->complete = response.complete();
  result->missing.clear();
  for (const v1::Piece& piece : response.missing()) {
    result->missing.push_back({.block = piece.block(),
                               .first = {piece.group(), piece.slice(), piece.layer()},
                               .layers = piece.length()});
  }
  for (const v1::PieceError& error : response.errors()) {
    if (error.piece() >= count) {
      return absl::InternalError(
          absl::StrCat("the node refused piece ", error.piece(), " of a commit of ", count));
    }
    ++result->errors_total;
    if (result->errors.size() >= kSegmentErrorsMax) continue;
    const Run& run = uncommitted_[first + error.piece()];
    result->errors.push_back({.block = run.block,
                              .first = run.first,
                              .layers = static_cast<uint32_t>(run.digests.size()),
                              .status = StatusOfPieceError(error)});
  }
  return absl::OkStatus();
}

absl::Status WriteSession::Abort(absl::Duration timeout) {
  CAIRN_CHECK(link_ != nullptr);
  if (!reservation_.token || ended_) return absl::OkStatus();
  v1::AbortRequest request;
  request.set_token(std::string(reservation_.token->view()));
  v1::AbortResponse response;
  const absl::Status status =
      link_->Call(&v1::CacheNode::Stub::Abort, request, timeout, {}, &response);
  ended_ = status.ok();
  return status;
}

void WriteSession::AbortQuietly() {
  if (link_ == nullptr || ended_ || !reservation_.abort_on_destroy || !reservation_.token) return;
  v1::AbortRequest request;
  request.set_token(std::string(reservation_.token->view()));
  v1::AbortResponse response;
  // Best effort: the token's time to live does the rest.
  (void)link_->CallOnce(&v1::CacheNode::Stub::Abort, request, kAbortQuietlyTimeout, &response);
}

}  // namespace cairn
