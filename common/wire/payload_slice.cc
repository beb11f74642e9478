#include "common/wire/payload_slice.h"

namespace cairn {
namespace {

void EndBorrow(void* owner) { delete static_cast<PayloadOwner*>(owner); }

}  // namespace

grpc::Slice BorrowSlice(absl::Span<const uint8_t> bytes, std::unique_ptr<PayloadOwner> owner) {
  if (bytes.empty()) return grpc::Slice();
  // gRPC never writes through a slice; its constructor only lacks the const.
  return grpc::Slice(const_cast<uint8_t*>(bytes.data()), bytes.size(), &EndBorrow, owner.release());
}

grpc::Slice CopySlice(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return grpc::Slice();
  return grpc::Slice(bytes.data(), bytes.size());
}

}  // namespace cairn
