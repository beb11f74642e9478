// SessionPart: blocks of a prompt at the node that holds them for a session now.
//
// Knows who else might. Not thread-safe; the session's. What it opened ends with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cairn/v1/decode.pb.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/decode/decode_client.h"
#include "client/cpp/decode/session_types.h"

namespace cairn {

class SessionPart {
 public:
  // Borrows the name space and the prompt's tokens. REQUIRES: the wish has holders.
  SessionPart(const NamespaceHandle* name_space, const Prompt& prompt, const Clock* clock,
              const SessionOptions& options, PartWish wish);
  ~SessionPart();

  SessionPart(const SessionPart&) = delete;
  SessionPart& operator=(const SessionPart&) = delete;

  // Opens it at the first holder that can; else what each of them said.
  absl::Status Open();
  // The same at the holder it was at, and then at the others.
  absl::Status OpenAgain();
  // At the others, the next one first.
  absl::Status OpenElsewhere();
  // It is then not open.
  void GiveUp() { Close(); }
  size_t holder_count() const { return wish_.holders.size(); }
  // Another part with this sequence of the same holder.
  std::unique_ptr<SessionPart> WithSequence(const SequenceId& sequence) const;

  bool is_open() const { return sequence_.has_value() || lease_.has_value(); }
  bool appends() const { return wish_.reserve_tokens > 0; }
  // By blocks of the cache. Without what was appended.
  const TokenRange& pinned() const { return pinned_; }
  // REQUIRES of these: it is open.
  const DecodeNode& node() const;
  const SequenceId* sequence() const { return sequence_ ? &*sequence_ : nullptr; }
  void FillTarget(v1::AttendItem* item) const;
  // Extends a lease when a part of its time is over. What comes of it the next step says.
  void KeepAlive();

  PartForm form() const { return wish_.form; }
  // Moves on each time that it was opened.
  uint64_t generation() const { return generation_; }

 private:
  // At `count` holders from this one on, until one can.
  absl::Status OpenFrom(size_t holder, size_t count);
  absl::Status OpenAt(const DecodeNode& node);
  absl::Status OpenSequence(const DecodeNode& node);
  absl::Status TakeLease(const DecodeNode& node);
  absl::Status CheckCovers(uint64_t end) const;
  void Close();

  const NamespaceHandle* const name_space_;
  const Prompt prompt_;
  const Clock* const clock_;
  const SessionOptions options_;
  const PartWish wish_;
  TokenRange pinned_;
  size_t holder_ = 0;  // Asked last.
  std::optional<SequenceId> sequence_;
  std::optional<ReadLease> lease_;
  absl::Time renew_at_;
  uint64_t generation_ = 0;
};

}  // namespace cairn
