#include "tests/common/wire/frame_samples.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cairn::testing {
namespace {

std::string RandomBytes(size_t size, Random& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Numbers at the edges of the varint encoding as often as others.
uint32_t RandomNumber(Random& random) {
  static constexpr uint32_t kEdges[] = {0,     1,          127,        128,       16383,
                                        16384, 0x7fffffff, 0x80000000, 0xffffffff};
  if (Below(random, 2) == 0) return kEdges[Below(random, std::size(kEdges))];
  return static_cast<uint32_t>(random() >> Below(random, 64));
}

template <typename Message>
void FillPieces(Message* message, Random& random) {
  static constexpr uint64_t kLengthBounds[] = {1, 2, 200, 5000, 60000};
  size_t payload_bytes = 0;
  const uint64_t pieces = Below(random, 12);
  for (uint64_t i = 0; i < pieces; ++i) {
    v1::Piece* piece = message->add_pieces();
    piece->set_block(RandomNumber(random));
    piece->set_group(RandomNumber(random));
    piece->set_slice(RandomNumber(random));
    piece->set_layer(RandomNumber(random));
    piece->set_offset(RandomNumber(random));
    piece->set_state(static_cast<v1::BlockState>(RandomNumber(random)));
    const uint64_t length = Below(random, kLengthBounds[Below(random, std::size(kLengthBounds))]);
    piece->set_length(static_cast<uint32_t>(length));
    payload_bytes += length;
    const uint64_t digests = Below(random, 20);
    for (uint64_t k = 0; k < digests; ++k) piece->add_digests(random());
  }
  message->set_payload(RandomBytes(payload_bytes, random));
}

template <typename Message>
FrameHeader PiecesOf(const Message& message) {
  FrameHeader header;
  for (const v1::Piece& piece : message.pieces()) {
    PieceHeader& out = header.pieces.emplace_back();
    out.block = piece.block();
    out.group = piece.group();
    out.slice = piece.slice();
    out.layer = piece.layer();
    out.offset = piece.offset();
    out.length = piece.length();
    out.state = piece.state();
    out.digests.assign(piece.digests().begin(), piece.digests().end());
  }
  return header;
}

}  // namespace

uint64_t Below(Random& random, uint64_t bound) { return random() % bound; }

v1::WriteRequest RandomWriteRequest(Random& random) {
  v1::WriteRequest message;
  if (Below(random, 8) != 0) message.set_token(RandomBytes(kKeyBytes, random));
  FillPieces(&message, random);
  return message;
}

v1::GetResponse RandomGetResponse(Random& random) {
  v1::GetResponse message;
  FillPieces(&message, random);
  return message;
}

std::string RandomFrameBytes(FrameKind kind, Random& random) {
  if (kind == FrameKind::kWriteRequest) return RandomWriteRequest(random).SerializeAsString();
  return RandomGetResponse(random).SerializeAsString();
}

FrameHeader HeaderOf(const v1::WriteRequest& message) {
  FrameHeader header = PiecesOf(message);
  header.token = TokenId::FromBytes(message.token());
  return header;
}

FrameHeader HeaderOf(const v1::GetResponse& message) { return PiecesOf(message); }

grpc::ByteBuffer Scatter(absl::string_view bytes, Random& random) {
  static constexpr uint64_t kSizeBounds[] = {1, 2, 9, 40, 8192, 1 << 20};
  const uint64_t size_bound = kSizeBounds[Below(random, std::size(kSizeBounds))];
  std::vector<grpc::Slice> slices;
  do {
    const size_t wanted = static_cast<size_t>(Below(random, size_bound + 1));
    // Many tiny slices cost time and find nothing new after the first kilobyte.
    const size_t least = slices.size() > 1024 ? 65536 : 0;
    const size_t size = std::min(bytes.size(), std::max(wanted, least));
    char* const block = new char[size];
    std::memcpy(block, bytes.data(), size);
    slices.emplace_back(block, size, [](void* memory) { delete[] static_cast<char*>(memory); });
    bytes.remove_prefix(size);
  } while (!bytes.empty());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "not a buffer";
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace cairn::testing
