// The bytes of a file of decisions: a head, then frames. What a frame holds is decision_codec.h's.
//
//     head:   "cairndec" || u32le version
//     frame:  u32le length || u64le XXH3-64 of the payload, seed = the frame's offset || payload
//
// A checksum that covers where the frame stands finds a frame that was moved, doubled or left out,
// beside cut tails and changed bits. A reader uses what stands before the first damage, and no
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn::router {

inline constexpr absl::string_view kDecisionMagic = "cairndec";
// Goes up when a policy can be told something new. Readers take all versions up to their own; what
// an older file does not say has its default.
inline constexpr uint32_t kDecisionFileVersion = 1;
inline constexpr size_t kDecisionHeadBytes = 12;
inline constexpr size_t kDecisionFrameHeadBytes = 12;
// A decision over 4,096 replicas takes under 2 MiB.
inline constexpr size_t kDecisionPayloadBytesMax = size_t{8} << 20;

std::string DecisionHead();

// Appends a frame that stands at `offset` of its file. REQUIRES: the payload is within its bound.
void AppendDecisionFrame(absl::string_view payload, uint64_t offset, std::string* out);

// DecisionFrames: reads frames, one after another. Borrows the stream. Not thread-safe.
class DecisionFrames {
 public:
  explicit DecisionFrames(std::istream* in) : in_(in) {}

  // First. INVALID_ARGUMENT for what is no file of decisions, or of a later version.
  absl::Status ReadHead();

  // The next frame's payload, which lives until the next call; nothing at the end, of the file or
  // of what is sound in it.
  std::optional<absl::string_view> Next();

  // Of all frames so far and the head; where the next one stands.
  uint64_t offset() const { return offset_; }
  // What is wrong at offset(), after Next gave nothing; empty where the file simply ended.
  const std::string& damage() const { return damage_; }

 private:
  // Fewer bytes only at the end of the stream.
  size_t Read(size_t bytes, std::string* out);

  std::istream* const in_;
  std::string payload_;
  uint64_t offset_ = 0;
  std::string damage_;
};

}  // namespace cairn::router
