// Generated messages on raw streams, where gRPC itself sees only bytes.
//
// Thread-safe: no state.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace cairn {

// `message` as bytes. An empty message is one empty slice, never a default-constructed buffer,
// which would abort a server of gRPC 1.51.
grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message);

// Replaces `message` by what `bytes` hold. INVALID_ARGUMENT, naming the message's type, when they
// do not parse or are more than kMessageBytesMax; `message` then has no meaning.
absl::Status DecodeMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace cairn
