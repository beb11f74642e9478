#include "router/decisions/decision_frames.h"

#include <xxhash.h>

#include <bit>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

template <typename Number>
void AppendNumber(Number number, std::string* out) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  out->append(bytes, sizeof(number));
}

template <typename Number>
Number NumberAt(absl::string_view bytes, size_t at) {
  CAIRN_CHECK(at + sizeof(Number) <= bytes.size());
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

uint64_t ChecksumOf(absl::string_view payload, uint64_t offset) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), offset);
}

}  // namespace

std::string DecisionHead() {
  std::string head(kDecisionMagic);
  AppendNumber(kDecisionFileVersion, &head);
  CAIRN_CHECK(head.size() == kDecisionHeadBytes);
  return head;
}

void AppendDecisionFrame(absl::string_view payload, uint64_t offset, std::string* out) {
  CAIRN_CHECK(payload.size() <= kDecisionPayloadBytesMax);
  AppendNumber(static_cast<uint32_t>(payload.size()), out);
  AppendNumber(ChecksumOf(payload, offset), out);
  out->append(payload.data(), payload.size());
}

size_t DecisionFrames::Read(size_t bytes, std::string* out) {
  // In pieces: a length from outside does not decide what is allocated.
  constexpr size_t kPieceBytes = size_t{64} << 10;
  out->clear();
  while (out->size() < bytes) {
    const size_t before = out->size();
    const size_t wanted = std::min(kPieceBytes, bytes - before);
    out->resize(before + wanted);
    in_->read(out->data() + before, static_cast<std::streamsize>(wanted));
    const auto got = static_cast<size_t>(in_->gcount());
    if (got == wanted) continue;
    out->resize(before + got);
    break;
  }
  return out->size();
}

absl::Status DecisionFrames::ReadHead() {
  CAIRN_CHECK(offset_ == 0);
  std::string head;
  Read(kDecisionHeadBytes, &head);
  if (head.size() < kDecisionHeadBytes || !absl::StartsWith(head, kDecisionMagic)) {
    return absl::InvalidArgumentError(
        absl::StrCat("is no file of decisions: it does not begin with \"", kDecisionMagic,
                     "\" and a version; cairn-router --record-decisions=FILE writes one"));
  }
  const auto version = NumberAt<uint32_t>(head, kDecisionMagic.size());
  if (version == 0 || version > kDecisionFileVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("is a file of decisions of version ", version, "; this program reads 1 to ",
                     kDecisionFileVersion, ": take the one of the router that wrote it"));
  }
  offset_ = kDecisionHeadBytes;
  return absl::OkStatus();
}

std::optional<absl::string_view> DecisionFrames::Next() {
  CAIRN_CHECK_MSG(offset_ > 0, "the head comes first");
  if (!damage_.empty()) return std::nullopt;
  std::string head;
  if (Read(kDecisionFrameHeadBytes, &head) == 0 && !in_->bad()) return std::nullopt;
  if (head.size() < kDecisionFrameHeadBytes) {
    damage_ = "the file ends within a frame";
    return std::nullopt;
  }
  const auto length = NumberAt<uint32_t>(head, 0);
  if (length > kDecisionPayloadBytesMax) {
    damage_ = absl::StrCat("a frame of ", length, " bytes, more than any has");
  } else if (Read(length, &payload_) < length) {
    damage_ = "the file ends within a frame";
  } else if (ChecksumOf(payload_, offset_) != NumberAt<uint64_t>(head, sizeof(length))) {
    damage_ = "a frame's checksum is not that of its bytes";
  }
  if (!damage_.empty()) return std::nullopt;
  offset_ += kDecisionFrameHeadBytes + length;
  return payload_;
}

}  // namespace cairn::router
