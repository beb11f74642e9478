#include "client/cpp/local/local_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/node_link.h"
#include "common/local/boot_id.h"
#include "common/local/local_limits.h"
#include "common/rpc/retry_status.h"

namespace cairn {
namespace {

constexpr absl::Duration kAnswerWithin = absl::Seconds(1);
// To what is to be taken in: given up, it would go over the channel while the node may still be at
// work on it, and there meet segments that have a writer.
constexpr absl::Duration kLandedWithin = absl::Seconds(5);
// Of a packet, until there is room for it: what is not answered may go out faster than it is read.
constexpr absl::Duration kSendWithin = absl::Milliseconds(100);
// Recalls; and waits that were interrupted.
constexpr int kPacketsBeforeAnswerMax = 64;
constexpr int kWaitsMax = 4;
constexpr absl::Duration kTurnWithin = absl::Milliseconds(500);
constexpr absl::Duration kOpenTimeout = absl::Seconds(1);
constexpr absl::Duration kBackoffMin = absl::Milliseconds(100);
constexpr absl::Duration kBackoffMax = absl::Minutes(1);

absl::Status None(absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("no local path to the node: ", why));
}

absl::Status Broken(absl::string_view what) {
  return absl::InternalError(absl::StrCat("on the local socket the node sent ", what));
}

absl::Status FailureOf(const v1::LocalFailure& failure) {
  const absl::Status status(static_cast<absl::StatusCode>(failure.code()), failure.message());
  if (status.ok()) return Broken("a failure that is none");
  if (failure.retry_after_ms() == 0) return status;
  return WithRetryAfter(status, absl::Milliseconds(failure.retry_after_ms()));
}

}  // namespace

LocalLink::Turn::Turn(LocalLink* link, absl::Time deadline) : link_(link) {
  const absl::Duration wait = std::min(kTurnWithin, link->TimeTo(deadline));
  absl::MutexLock lock(&link_->mutex_);
  const auto is_free = [link]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(link->mutex_) { return !link->busy_; };
  has_ = link_->mutex_.AwaitWithTimeout(absl::Condition(&is_free), wait);
  if (has_) link_->busy_ = true;
}

LocalLink::Turn::~Turn() {
  if (!has_) return;
  absl::MutexLock lock(&link_->mutex_);
  link_->busy_ = false;
}

LocalLink::~LocalLink() {
  const bool connected = static_cast<bool>(socket_);
  const PacketSocket socket = std::move(socket_);
  segments_.clear();
  recalled_.clear();
  staging_ = nullptr;
  if (!connected) return;
  for (const auto& segment : stale_) {
    if (!segment.expired()) return;
  }
  v1::LocalRequest request;
  request.mutable_unmapped()->set_all(true);
  (void)socket.Send(request.SerializeAsString(), {});
}

void LocalLink::CountCopied(uint64_t blocks, uint64_t bytes) {
  copied_.fetch_add(blocks, std::memory_order_relaxed);
  copied_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

LocalStats LocalLink::stats() const {
  const auto of = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.connects = of(connects_),
          .fallbacks = of(fallbacks_),
          .blocks_in_place = of(in_place_),
          .blocks_copied = of(copied_),
          .bytes_copied = of(copied_bytes_),
          .bytes_staged = of(staged_bytes_),
          .changed_blocks = of(changed_),
          .connected = connected_.load(std::memory_order_relaxed)};
}

absl::Status LocalLink::Connect(absl::Time deadline) {
  if (socket_) return absl::OkStatus();
  if (clock_->SteadyNow() < retry_at_) return None("it is tried again later");
  // The next hello says that nothing of the last connection is mapped.
  std::erase_if(stale_, [](const auto& segment) { return segment.expired(); });
  if (!stale_.empty()) return None("memory of the last connection is still looked at");
  const absl::Status status = ConnectNow(deadline);
  if (status.ok()) {
    backoff_ = absl::ZeroDuration();
    return status;
  }
  socket_ = PacketSocket();
  Failed();
  return absl::IsUnavailable(status) ? status : None(status.message());
}

void LocalLink::Failed() {
  backoff_ = std::clamp(backoff_ * 2, kBackoffMin, kBackoffMax);
  retry_at_ = clock_->SteadyNow() + backoff_;
}

absl::Status LocalLink::ConnectNow(absl::Time deadline) {
  const absl::Duration left = TimeTo(deadline);
  if (left <= absl::ZeroDuration()) return None("the time for this call is over");
  v1::OpenLocalResponse opened;
  const absl::Status status = link_->CallOnce(
      &v1::CacheNode::Stub::OpenLocal, v1::OpenLocalRequest(),
      std::min({kOpenTimeout, left, link_->ControlTimeout(absl::ZeroDuration())}), &opened);
  if (!status.ok()) return status;
  const bool elsewhere = opened.socket().empty() || opened.boot_id() != BootId();
  if (elsewhere) {
    backoff_ = kBackoffMax;
    return None("the node offers none, or is on another host");
  }
  absl::StatusOr<PacketSocket> socket = PacketSocket::Connect(opened.socket());
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  buffer_.resize(kLocalPacketBytesMax);
  v1::LocalRequest request;
  request.mutable_hello()->set_ticket(opened.ticket());
  request.mutable_hello()->set_previous_connection(connection_);
  v1::LocalAnswer answer;
  std::vector<Descriptor> descriptors;
  const absl::Status said = Exchange(request, deadline, &answer, &descriptors);
  if (!said.ok()) return said;
  if (!answer.has_welcome()) return Broken("no welcome");
  connection_ = answer.welcome().connection();
  connects_.fetch_add(1, std::memory_order_relaxed);
  connected_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

void LocalLink::Drop() {
  socket_ = PacketSocket();
  connected_.store(false, std::memory_order_relaxed);
  for (auto* map : {&segments_, &recalled_}) {
    for (auto& [id, segment] : *map) stale_.emplace_back(segment);
    map->clear();
  }
  absl::MutexLock lock(&mutex_);
  // Who fills it goes on doing so; it comes to nothing.
  if (!staging_taken_) staging_ = nullptr;
}

absl::Status LocalLink::Send(const v1::LocalRequest& request) {
  const std::string packet = request.SerializeAsString();
  if (packet.size() > kLocalPacketBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a request of ", packet.size(), " bytes"));
  }
  return socket_.Send(packet, {}, kSendWithin);
}

absl::Status LocalLink::Receive(absl::Time deadline, v1::LocalAnswer* answer,
                                std::vector<Descriptor>* descriptors) {
  int waits = 0;
  for (int packets = 0; packets < kPacketsBeforeAnswerMax && waits < kWaitsMax; ++packets) {
    const absl::Duration left = TimeTo(deadline);
    if (left <= absl::ZeroDuration()) break;
    absl::StatusOr<PacketSocket::Packet> packet =
        socket_.Receive(absl::MakeSpan(buffer_), kLocalDescriptorsPerPacketMax, left);
    if (absl::IsDeadlineExceeded(packet.status())) {
      ++waits;
      continue;
    }
    if (!packet.ok()) return packet.status();
    const int size = static_cast<int>(packet->bytes.size());
    if (!answer->ParseFromArray(packet->bytes.data(), size)) return Broken("what is no answer");
    if (answer->has_recall()) {
      Recall(answer->recall());
      continue;
    }
    *descriptors = std::move(packet->descriptors);
    return answer->has_failure() ? FailureOf(answer->failure()) : absl::OkStatus();
  }
  return absl::UnavailableError("the node does not answer");
}

absl::Status LocalLink::Exchange(const v1::LocalRequest& request, absl::Time deadline,
                                 v1::LocalAnswer* answer, std::vector<Descriptor>* descriptors) {
  ReturnUnused();
  if (!socket_) return None("the connection is over");
  // Nothing is asked that would not be waited for.
  if (TimeTo(deadline) <= absl::ZeroDuration()) return None("the time for this call is over");
  absl::Status status = Send(request);
  answer->Clear();
  if (status.ok()) {
    const absl::Duration within = request.has_put() ? kLandedWithin : kAnswerWithin;
    status = Receive(std::min(deadline, Deadline(within)), answer, descriptors);
  }
  // A failure that was answered says nothing of the connection.
  if (!status.ok() && !answer->has_failure()) {
    Drop();
    return absl::IsUnavailable(status) ? status : None(status.message());
  }
  return status;
}

absl::Status LocalLink::ExchangeAgain(const v1::LocalRequest& request, absl::Time deadline,
                                      v1::LocalAnswer* answer,
                                      std::vector<Descriptor>* descriptors) {
  absl::Status status;
  for (int attempt = 0; attempt < 2; ++attempt) {
    status = Connect(deadline);
    if (!status.ok()) return status;
    status = Exchange(request, deadline, answer, descriptors);
    if (status.ok() || answer->has_failure()) return status;
  }
  Failed();
  return status;
}

absl::StatusOr<LocalLink::Places> LocalLink::Read(const v1::LocalRead& read, absl::Time deadline) {
  const Turn turn(this, deadline);
  if (!turn) return None("others use it");
  v1::LocalRequest request;
  *request.mutable_read() = read;
  v1::LocalAnswer answer;
  std::vector<Descriptor> descriptors;
  absl::Status status = ExchangeAgain(request, deadline, &answer, &descriptors);
  if (!status.ok()) return status;
  Places places;
  places.lease = LeaseId::FromBytes(answer.places().lease());
  status = answer.has_places() ? TakeSegments(answer.places(), std::move(descriptors))
                               : Broken("another answer than was asked for");
  const size_t keys = read.keys().size() / kKeyBytes;
  if (status.ok() && static_cast<size_t>(answer.places().places_size()) != keys) {
    status = Broken(absl::StrCat(answer.places().places_size(), " places for ", keys, " keys"));
  }
  for (const v1::LocalPlace& from : answer.places().places()) {
    Place& place = places.places.emplace_back();
    place.state = from.state();
    if (!status.ok() || from.state() != v1::BLOCK_STATE_UNSPECIFIED) continue;
    place.segment = SegmentOf(from.segment());
    if (place.segment == nullptr || !place.segment->HasSlot(from.slot())) {
      status = Broken("a place in memory that it did not give");
      continue;
    }
    place.slot = from.slot();
    place.generation = from.generation();
    place.digests.assign(from.digests().begin(), from.digests().end());
    place.absent.assign(from.absent().begin(), from.absent().end());
  }
  if (status.ok()) {
    ReturnUnused();
    return places;
  }
  // What it has given cannot be told any more.
  places.places.clear();
  Drop();
  Failed();
  return None(status.message());
}

absl::Status LocalLink::TakeSegments(const v1::LocalPlaces& places,
                                     std::vector<Descriptor> descriptors) {
  if (descriptors.size() != 2 * static_cast<size_t>(places.segments_size())) {
    return Broken(absl::StrCat(descriptors.size(), " descriptors for ", places.segments_size(),
                               " memory segments"));
  }
  for (int i = 0; i < places.segments_size(); ++i) {
    const v1::LocalSegment& segment = places.segments(i);
    const size_t at = 2 * static_cast<size_t>(i);
    absl::StatusOr<std::shared_ptr<const MappedSegment>> mapped = MappedSegment::Map(
        {.bytes = segment.bytes(), .slot_bytes = segment.slot_bytes(), .slots = segment.slots()},
        descriptors[at], descriptors[at + 1]);
    if (!mapped.ok()) return mapped.status();
    // It may be wanted back already.
    const auto recalled = recalled_.find(segment.id());
    (recalled == recalled_.end() ? segments_[segment.id()] : recalled->second) = *std::move(mapped);
  }
  return absl::OkStatus();
}

std::shared_ptr<const MappedSegment> LocalLink::SegmentOf(uint64_t id) const {
  for (const auto* map : {&segments_, &recalled_}) {
    if (const auto it = map->find(id); it != map->end()) return it->second;
  }
  return nullptr;
}

void LocalLink::End(const LeaseId& lease, uint32_t usable_blocks) {
  const Turn turn(this, absl::InfiniteFuture());
  if (!turn || !socket_) return;
  v1::LocalRequest request;
  request.mutable_end()->set_lease(std::string(lease.view()));
  request.mutable_end()->set_usable_blocks(usable_blocks);
  if (!Send(request).ok()) Drop();
}

void LocalLink::Recall(const v1::LocalRecall& recall) {
  for (const uint64_t id : recall.segments()) {
    auto it = segments_.find(id);
    // One that was never mapped, or was given back: said anew.
    recalled_[id] = it == segments_.end() ? nullptr : std::move(it->second);
    if (it != segments_.end()) segments_.erase(it);
  }
}

void LocalLink::ReturnUnused() {
  if (recalled_.empty()) return;
  v1::LocalRequest request;
  for (auto it = recalled_.begin(); it != recalled_.end();) {
    auto current = it++;
    if (current->second != nullptr && current->second.use_count() > 1) continue;
    request.mutable_unmapped()->add_segments(current->first);
    recalled_.erase(current);
  }
  if (request.has_unmapped() && !Send(request).ok()) Drop();
}

}  // namespace cairn
