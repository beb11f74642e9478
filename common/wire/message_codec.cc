#include "common/wire/message_codec.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {

grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message) {
  const size_t size = message.ByteSizeLong();
  CAIRN_CHECK_MSG(size <= kMessageBytesMax, message.GetTypeName());
  grpc::Slice slice(size);
  // The slice is ours alone until it is in the buffer.
  uint8_t* const begin = const_cast<uint8_t*>(slice.begin());
  CAIRN_CHECK(message.SerializeWithCachedSizesToArray(begin) == begin + size);
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status DecodeMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message) {
  if (!bytes.Valid()) {
    return absl::InvalidArgumentError(absl::StrCat("no ", message->GetTypeName(), " in the call"));
  }
  if (bytes.Length() > kMessageBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(message->GetTypeName(), " of ", bytes.Length(),
                                                   " bytes, at most ", kMessageBytesMax));
  }
  grpc::ByteBuffer shared(bytes);  // the reader wants it mutable
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok() || !message->ParseFromZeroCopyStream(&reader)) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed ", message->GetTypeName(), " of ", bytes.Length(), " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace cairn
