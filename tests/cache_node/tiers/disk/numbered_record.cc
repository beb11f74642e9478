#include "tests/cache_node/tiers/disk/numbered_record.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cairn::testing {
namespace {

// Splitmix: any number gives bits that look like no other's.
uint64_t Mix(uint64_t number) {
  uint64_t x = number + 0x9e37'79b9'7f4a'7c15;
  x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ x >> 27) * 0x94d0'49bb'1331'11eb;
  return x ^ x >> 31;
}

template <typename T>
std::vector<T> Numbers(uint64_t seed, size_t count) {
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>(Mix(seed * 1000 + i));
  return numbers;
}

}  // namespace

BlockKey NumberedRecord::KeyOf(uint64_t number) {
  BlockKey key;
  const uint64_t words[] = {Mix(number), number};
  std::memcpy(key.bytes.data(), words, sizeof(words));
  return key;
}

void NumberedRecord::FillPayload(uint64_t number, absl::Span<uint8_t> payload) {
  for (size_t i = 0; i < payload.size(); i += 8) {
    const uint64_t word = Mix(number << 20 ^ i);
    std::memcpy(payload.data() + i, &word, std::min<size_t>(8, payload.size() - i));
  }
}

NumberedRecord::NumberedRecord(uint64_t number, size_t payload_bytes)
    : tokens_(Numbers<uint32_t>(number, 16)),
      extra_(Numbers<uint8_t>(number, number % 3 * 37)),
      digests_(Numbers<uint64_t>(number, 4)),
      payload_(payload_bytes) {
  FillPayload(number, absl::MakeSpan(payload_));
  scope_.fingerprint.bytes.fill(static_cast<uint8_t>(number % 2));
  scope_.tenant = absl::StrCat("tenant-", number % 3);
  scope_.adapter = number % 5 == 0 ? "adapter@1" : "";
  scope_.salt = std::string(number % 2, '\0');
  scope_.scope_digest = KeyOf(number % 30 + 1'000'000);
  node::DiskBlock& block = record_.block;
  block.key = KeyOf(number);
  if (number % 4 != 0) block.parent = KeyOf(number - 1);
  block.parent_shared = number % 4 == 1;
  block.depth = static_cast<uint32_t>(number % 4);
  block.sequence = number;
  block.epoch = number % 7;
  block.expires_unix_ms = number % 2 == 0 ? 0 : static_cast<int64_t>(1'900'000'000'000 + number);
  block.priority = static_cast<uint8_t>(number % 4);
  block.payload_bytes = payload_bytes;
  block.provenance = {.writer = number * 0x9e37'79b9'7f4a'7c15,
                      .written_unix_ms = static_cast<int64_t>(1'700'000'000'000 + number)};
  record_.scope = &scope_;
  record_.writer = number * 3;
  record_.written_unix_ms = static_cast<int64_t>(1'800'000'000'000 + number);
  record_.tokens = tokens_;
  record_.extra = extra_;
  record_.digests = digests_;
  record_.payload = payload_;
}

std::string NumberedRecord::Differs(const node::DiskRecordFields& fields,
                                    absl::Span<const uint8_t> payload) const {
  const node::DiskBlock& a = fields.block;
  const node::DiskBlock& b = record_.block;
  std::string differs;
  if (payload != absl::MakeConstSpan(payload_)) differs += " payload";
  if (a.key != b.key || a.parent != b.parent || a.parent_shared != b.parent_shared ||
      a.depth != b.depth) {
    differs += " key, parent or depth";
  }
  if (a.sequence != b.sequence || a.epoch != b.epoch || a.priority != b.priority ||
      a.expires_unix_ms != b.expires_unix_ms || a.payload_bytes != b.payload_bytes) {
    differs += " sequence, epoch, expiry, priority or size";
  }
  if (a.provenance != b.provenance) differs += " provenance";
  if (fields.scope != scope_) differs += " scope";
  if (fields.writer != record_.writer || fields.written_unix_ms != record_.written_unix_ms) {
    differs += " writer or time";
  }
  if (fields.tokens != tokens_) differs += " tokens";
  if (fields.extra != extra_) differs += " extra";
  if (fields.digests != digests_) differs += " digests";
  return differs;
}

}  // namespace cairn::testing
