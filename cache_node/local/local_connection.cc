#include "cache_node/local/local_connection.h"

#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/local/local_limits.h"

namespace cairn::node {

LocalConnection::LocalConnection(uint64_t key, PacketSocket socket, absl::Time hello_due)
    : key_(key),
      socket_(std::move(socket)),
      process_(std::make_shared<const Descriptor>(socket_.WatchPeer())),
      hello_due_(hello_due) {}

absl::StatusOr<LocalConnection::Received> LocalConnection::Receive(absl::Span<char> buffer) {
  const absl::StatusOr<PacketSocket::Packet> packet =
      socket_.Receive(buffer, /*descriptors_max=*/0, absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(packet.status())) return Received{.request = {}, .none = true};
  if (!packet.ok()) return packet.status();
  Received received;
  const int size = static_cast<int>(packet->bytes.size());
  if (received.request.ParseFromArray(packet->bytes.data(), size)) return received;
  return absl::InvalidArgumentError("a packet on the local socket is no request");
}

absl::Status LocalConnection::Send(const v1::LocalAnswer& answer,
                                   absl::Span<const int> descriptors) {
  const std::string packet = answer.SerializeAsString();
  if (packet.size() > kLocalPacketBytesMax) {
    return absl::InternalError(absl::StrCat("an answer of ", packet.size(), " bytes"));
  }
  return socket_.Send(packet, descriptors);
}

void LocalConnection::Welcome(const LocalSession::Parts& parts, Caller caller,
                              const LocalConnectionId& id) {
  session_.emplace(parts, std::move(caller), /*borrower=*/key_);
  id_ = id;
  absl::MutexLock lock(&mutex_);
  hello_due_.reset();
}

absl::Status LocalConnection::Recall(absl::Span<const uint64_t> segments, absl::Time due) {
  v1::LocalAnswer answer;
  answer.mutable_recall()->mutable_segments()->Add(segments.begin(), segments.end());
  {
    absl::MutexLock lock(&mutex_);
    for (const uint64_t segment : segments) recalled_[segment] = due;
  }
  return Send(answer, {});
}

void LocalConnection::GaveBack(const v1::LocalUnmapped& unmapped) {
  absl::MutexLock lock(&mutex_);
  if (unmapped.all()) recalled_.clear();
  for (const uint64_t segment : unmapped.segments()) recalled_.erase(segment);
}

void LocalConnection::DropIdleStaging(absl::Time now) {
  {
    // The session is made before this is reset.
    absl::MutexLock lock(&mutex_);
    if (hello_due_.has_value()) return;
  }
  session_->DropIdleStaging(now);
}

LocalConnection::Overdue LocalConnection::OverdueAt(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  if (cut_) return Overdue::kNothing;
  if (hello_due_.has_value()) return now < *hello_due_ ? Overdue::kNothing : Overdue::kHello;
  for (const auto& [segment, due] : recalled_) {
    if (now >= due) return Overdue::kMemory;
  }
  return Overdue::kNothing;
}

void LocalConnection::Cut() {
  {
    absl::MutexLock lock(&mutex_);
    cut_ = true;
  }
  shutdown(socket_.fd(), SHUT_RDWR);
}

}  // namespace cairn::node
