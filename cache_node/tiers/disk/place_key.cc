#include "cache_node/tiers/disk/place_key.h"

#include "common/base/check.h"

namespace cairn::node {
namespace {

constexpr char kChunkMark = 1;

void AppendBigEndian(std::string* out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

std::string RecordKey(DiskPlace place) {
  std::string key;
  key.reserve(kPlaceKeyBytes + 1);
  AppendBigEndian(&key, place.file, 8);
  AppendBigEndian(&key, place.slot, 4);
  return key;
}

std::string ChunkKey(DiskPlace last) {
  std::string key = RecordKey(last);
  key.push_back(kChunkMark);
  return key;
}

std::string FooterKey(uint64_t file) { return RecordKey({file, kFooterSlot}); }

DiskPlace ParseRecordKey(absl::string_view key) {
  CAIRN_CHECK(key.size() == kPlaceKeyBytes);
  return {ReadBigEndian(key.substr(0, 8)), static_cast<uint32_t>(ReadBigEndian(key.substr(8)))};
}

}  // namespace cairn::node
