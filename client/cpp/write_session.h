// WriteSession: the blocks that one call of Reserve took, until they are committed or given up.
//
// Move-only; several ranks write into one reservation, each through a session of its own attached
// to the same token. Payload is copied out of the caller's memory before Write returns. A block
// becomes visible to readers when all parts of all required groups are committed, by whichever
// ranks. When a session that reserved is destroyed before its blocks are complete, it ends the
// token for all its ranks, unless told not to; an attached session never does. Not thread-safe. The
// client outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/v1/write.pb.h"
#include "client/cpp/frame_packer.h"
#include "client/cpp/local/staged_blocks.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/segment_buffers.h"
#include "client/cpp/segment_selection.h"
#include "client/cpp/write_stream.h"
#include "common/base/bytes16.h"

namespace cairn {

class NodeLink;

struct WriteOptions {
  // Zero takes the client's data_timeout.
  absl::Duration timeout = absl::ZeroDuration();
  // When the node does not admit the bytes now, wait as it says and send again.
  bool wait_when_exhausted = false;
  // The source's memory can be read for as long as the client lives, whatever it holds by then, as
  // an engine's KV pool can: large segments are sent from where they lie instead of from copies.
  bool source_stays_readable = false;
};

struct WriteResult {
  uint64_t segments_written = 0;
  uint64_t bytes_written = 0;
  // At most kSegmentErrorsMax are listed.
  std::vector<SegmentError> errors;
  size_t errors_total = 0;

  bool AllWritten() const { return errors_total == 0; }
};

struct CommitResult {
  // Blocks of the token that are present now.
  uint32_t blocks_present = 0;
  // All of them are.
  bool complete = false;
  // Segments of required groups that no rank has committed yet, as runs of layers.
  struct Missing {
    size_t block = 0;
    SegmentId first;
    uint32_t layers = 0;
  };
  std::vector<Missing> missing;
  std::vector<SegmentError> errors;
  size_t errors_total = 0;
};

class WriteSession {
 public:
  // What a rank needs to attach to another's reservation.
  struct Ticket {
    TokenId token;
    std::vector<BlockKey> keys;
    // Indexes in keys of what the token covers.
    std::vector<uint32_t> reserved;
  };

  // One of a client's; use CacheNodeClient::Reserve and AttachWrite.
  struct Reservation {
    std::vector<BlockKey> keys;
    std::vector<v1::ReserveAnswer> answers;
    std::optional<TokenId> token;
    absl::Duration retry_after = absl::ZeroDuration();
    absl::Duration token_ttl = absl::ZeroDuration();
    bool abort_on_destroy = false;
  };
  WriteSession(NodeLink* link, const NamespaceHandle& name_space, Reservation reservation);
  ~WriteSession();

  WriteSession(WriteSession&& other) noexcept;
  WriteSession& operator=(WriteSession&& other) noexcept;

  const NamespaceHandle& name_space() const { return name_space_; }
  // Nothing when no block was reserved: there is nothing to write.
  const std::optional<TokenId>& token() const { return reservation_.token; }
  const std::vector<BlockKey>& keys() const { return reservation_.keys; }
  // One a key. Of an attached session: RESERVED or unspecified.
  const std::vector<v1::ReserveAnswer>& answers() const { return reservation_.answers; }
  // Indexes in keys() of what the token covers.
  const std::vector<uint32_t>& reserved() const { return reserved_; }
  // With NO_SPACE or QUOTA: least wait before a retry.
  absl::Duration retry_after() const { return reservation_.retry_after; }
  absl::Duration token_ttl() const { return reservation_.token_ttl; }
  // REQUIRES: token().
  Ticket ticket() const;

  // Writes the named layers of each of `blocks` (indexes in keys(), each reserved, no duplicates);
  // no parts at all means every part. Safe to repeat: a segment that is in already is fine. Not OK
  // when the stream failed; OK with errors when the node refused single segments.
  absl::StatusOr<WriteResult> Write(absl::Span<const uint32_t> blocks,
                                    absl::Span<const PartLayers> parts, SegmentSource source,
                                    const WriteOptions& options = {});
  // Every part of every reserved block.
  absl::StatusOr<WriteResult> WriteAll(SegmentSource source, const WriteOptions& options = {});

  // Memory of a node on this host to compute blocks into (as Write names them), then written with
  // one copy by the node. UNAVAILABLE where there is no such way: Write takes any memory.
  absl::StatusOr<StagedBlocks> Stage(absl::Span<const uint32_t> blocks);
  // All of it is in, or the failure; FAILED_PRECONDITION when the memory went back unused
  // meanwhile, and the blocks are to be written again from where they came from. REQUIRES: of this
  // session.
  absl::StatusOr<WriteResult> WriteStaged(StagedBlocks staged);

  // Publishes what this session wrote since its last commit, and says what is missing, also when
  // that is nothing. Zero takes the client's control_timeout.
  absl::StatusOr<CommitResult> Commit(absl::Duration timeout = {});

  // Ends the token for all ranks; blocks already present stay.
  absl::Status Abort(absl::Duration timeout = {});

  // Leaves the token to its time to live, or to other ranks: destruction does nothing.
  void KeepOnDestroy() { reservation_.abort_on_destroy = false; }

 private:
  absl::StatusOr<std::vector<FramePacker::Block>> BlocksOf(
      absl::Span<const uint32_t> indexes) const;
  void RememberItem(const SegmentSelection& selection, absl::Span<const FramePacker::Block> blocks,
                    size_t item, uint64_t digest, WriteResult* result);
  // Notes what `stream` wrote, from item `first` on.
  void RememberWritten(const FramePacker& packer, const SegmentSelection& selection,
                       absl::Span<const FramePacker::Block> blocks, size_t first,
                       const WriteStream& stream, WriteResult* result);
  absl::Status CommitBatch(size_t first, size_t count, absl::Duration timeout,
                           CommitResult* result);
  void AbortQuietly();

  NodeLink* link_;  // Null when moved from.
  NamespaceHandle name_space_;
  Reservation reservation_;
  std::vector<uint32_t> reserved_;
  // Written and not committed: runs of layers with their digests.
  struct Run {
    uint32_t block = 0;
    SegmentId first;
    std::vector<uint64_t> digests;  // One a layer.
  };
  std::vector<Run> uncommitted_;
  bool ended_ = false;  // Complete or aborted.
};

}  // namespace cairn
