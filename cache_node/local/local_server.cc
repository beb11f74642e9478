#include "cache_node/local/local_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/local/boot_id.h"
#include "common/local/local_limits.h"
#include "common/rpc/retry_status.h"
#include "common/server/thread_name.h"

namespace cairn::node {
namespace {

constexpr int kBacklog = 128;
// Packets of one connection before others have their turn.
constexpr int kPacketsPerTurn = 16;
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

Descriptor NewEvent() { return Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void Ring(const Descriptor& event) {
  const uint64_t one = 1;
  // It stays readable when its count is at its most.
  (void)!write(event.get(), &one, sizeof(one));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalServer>> LocalServer::Start(Options options,
                                                                const Parts& parts) {
  absl::StatusOr<PacketSocket> listener = PacketSocket::Listen(options.socket, kBacklog);
  if (!listener.ok()) return listener.status();
  auto server = std::unique_ptr<LocalServer>(
      new LocalServer(std::move(options), parts, *std::move(listener)));
  if (!server->epoll_ || !server->recalls_ || !server->stop_) {
    return absl::ResourceExhaustedError(
        "no descriptors left for the local socket; raise the limit of open files (ulimit -n)");
  }
  server->Watch(server->listener_.fd(), kListenerKey, EPOLLIN | EPOLLONESHOT, false);
  server->Watch(server->recalls_.get(), kRecallsKey, EPOLLIN | EPOLLONESHOT, false);
  server->Watch(server->stop_.get(), kStopKey, EPOLLIN, false);
  for (int i = 0; i < server->options_.threads; ++i) {
    server->threads_.emplace_back([raw = server.get(), i] { raw->Run(static_cast<size_t>(i)); });
  }
  return server;
}

LocalServer::LocalServer(Options options, const Parts& parts, PacketSocket listener)
    : options_(std::move(options)),
      parts_(parts),
      boot_id_(BootId()),
      listener_(std::move(listener)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      recalls_(NewEvent()),
      stop_(NewEvent()),
      tickets_(parts.time, parts.random),
      rights_seen_(parts.callers->Generation()) {}

LocalServer::~LocalServer() {
  Ring(stop_);
  for (std::thread& thread : threads_) thread.join();
  for (const ConnectionPtr& connection : All()) Close(connection);
  if (options_.socket[0] != '@') unlink(options_.socket.c_str());
}

void LocalServer::Watch(int fd, uint64_t key, uint32_t events, bool again) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  const int done = epoll_ctl(epoll_.get(), again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
  CAIRN_CHECK_MSG(done == 0 || errno == ENOMEM || errno == ENOSPC, "epoll_ctl");
}

absl::StatusOr<v1::OpenLocalResponse> LocalServer::Open(const Caller& caller) {
  const uint64_t connections = parts_.counters->connections.load(std::memory_order_relaxed);
  if (connections >= options_.connections_max || departed_.full(caller.tenant)) {
    return WithRetryAfter(
        absl::ResourceExhaustedError(absl::StrCat("connections on the local socket: ", connections,
                                                  " already, or too many left with memory")),
        kRetryAfter);
  }
  const absl::StatusOr<LocalTicket> ticket = tickets_.Issue(caller);
  if (!ticket.ok()) return ticket.status();
  v1::OpenLocalResponse response;
  response.set_socket(options_.socket);
  response.set_ticket(std::string(ticket->view()));
  response.set_ticket_ttl_ms(
      static_cast<uint32_t>(absl::ToInt64Milliseconds(LocalTickets::kTimeToLive)));
  response.set_boot_id(boot_id_);
  return response;
}

void LocalServer::WakeForRecalls() { Ring(recalls_); }

void LocalServer::Tick() {
  const uint64_t rights = parts_.callers->Generation();
  const bool changed = rights_seen_.exchange(rights) != rights;
  if (changed) tickets_.Clear();
  if (accept_later_.exchange(false)) {
    Watch(listener_.fd(), kListenerKey, EPOLLIN | EPOLLONESHOT, true);
  }
  const absl::Time now = parts_.time->Now();
  for (const ConnectionPtr& connection : All()) {
    connection->DropIdleStaging(now);
    const LocalConnection::Overdue overdue = connection->OverdueAt(now);
    if (overdue == LocalConnection::Overdue::kNothing && !changed) continue;
    if (overdue == LocalConnection::Overdue::kHello) {
      parts_.counters->cut_silent.fetch_add(1, std::memory_order_relaxed);
    } else if (overdue == LocalConnection::Overdue::kMemory) {
      parts_.counters->cut_not_returning.fetch_add(1, std::memory_order_relaxed);
    }
    connection->Cut();
  }
}

LocalServer::ConnectionPtr LocalServer::Find(uint64_t key) const {
  absl::MutexLock lock(&mutex_);
  auto it = connections_.find(key);
  return it == connections_.end() ? nullptr : it->second;
}

std::vector<LocalServer::ConnectionPtr> LocalServer::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ConnectionPtr> all;
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

void LocalServer::Run(size_t thread) {
  NameThisThread(absl::StrCat("local", thread));
  std::string buffer(kLocalPacketBytesMax, '\0');
  while (true) {
    epoll_event event{};
    const int ready = epoll_wait(epoll_.get(), &event, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    CAIRN_CHECK(ready == 1);
    if (event.data.u64 == kStopKey) return;
    HandleEvent(event.data.u64, absl::MakeSpan(buffer));
  }
}

void LocalServer::HandleEvent(uint64_t key, absl::Span<char> buffer) {
  if (key == kListenerKey) {
    if (Accept()) {
      Watch(listener_.fd(), kListenerKey, EPOLLIN | EPOLLONESHOT, true);
    } else {
      accept_later_.store(true);
    }
    return;
  }
  if (key == kRecallsKey) {
    uint64_t rung = 0;
    (void)!read(recalls_.get(), &rung, sizeof(rung));
    Watch(recalls_.get(), kRecallsKey, EPOLLIN | EPOLLONESHOT, true);
    SendRecalls();
    return;
  }
  const ConnectionPtr connection = Find(key);
  if (connection == nullptr) {
    // A process has ended that had memory.
    const std::optional<BorrowerId> borrower = departed_.TakeByKey(key);
    if (borrower.has_value()) parts_.store->ReturnAllSegments(*borrower);
    return;
  }
  if (Serve(connection.get(), buffer)) {
    Watch(connection->fd(), key, EPOLLIN | EPOLLONESHOT, true);
  } else {
    Close(connection);
  }
}

bool LocalServer::Accept() {
  while (true) {
    absl::StatusOr<PacketSocket> socket = listener_.Accept();
    if (!socket.ok()) {
      parts_.counters->accepts_failed.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (!*socket) return true;
    absl::MutexLock lock(&mutex_);
    if (connections_.size() >= options_.connections_max) continue;
    const uint64_t key = next_key_++;
    auto connection = std::make_shared<LocalConnection>(key, *std::move(socket),
                                                        parts_.time->Now() + options_.hello_within);
    const int fd = connection->fd();
    connections_.emplace(key, std::move(connection));
    parts_.counters->connections.fetch_add(1, std::memory_order_relaxed);
    Watch(fd, key, EPOLLIN | EPOLLONESHOT, false);
  }
}

bool LocalServer::Serve(LocalConnection* connection, absl::Span<char> buffer) {
  for (int i = 0; i < kPacketsPerTurn; ++i) {
    const absl::StatusOr<LocalConnection::Received> received = connection->Receive(buffer);
    if (received.ok() && received->none) return true;
    absl::Status status = received.status();
    if (status.ok()) status = Answer(connection, received->request);
    if (status.ok()) continue;
    CountCut(status);
    return false;
  }
  return true;
}

void LocalServer::CountCut(const absl::Status& why) {
  LocalCounters& counters = *parts_.counters;
  if (absl::IsInvalidArgument(why)) {
    counters.cut_bad_packet.fetch_add(1, std::memory_order_relaxed);
  } else if (absl::IsResourceExhausted(why)) {
    counters.cut_not_reading.fetch_add(1, std::memory_order_relaxed);
  } else if (absl::IsUnauthenticated(why)) {
    counters.refused_tickets.fetch_add(1, std::memory_order_relaxed);
  }
}

absl::Status LocalServer::Answer(LocalConnection* connection, const v1::LocalRequest& request) {
  if (connection->session() == nullptr) return Hello(connection, request);
  if (request.has_unmapped()) connection->GaveBack(request.unmapped());
  const LocalSession::Reply reply = connection->session()->Handle(request);
  if (reply.answer == nullptr) return absl::OkStatus();
  std::vector<int> descriptors;
  for (const LentSegment& segment : reply.segments) {
    descriptors.push_back(segment.memory_fd);
    descriptors.push_back(segment.generations_fd);
  }
  if (reply.staging != nullptr) descriptors.push_back(reply.staging->fd());
  return connection->Send(*reply.answer, descriptors);
}

absl::Status LocalServer::Hello(LocalConnection* connection, const v1::LocalRequest& request) {
  if (!request.has_hello()) return absl::InvalidArgumentError("the first request is hello");
  std::optional<Caller> caller = tickets_.Take(request.hello().ticket());
  if (!caller.has_value()) {
    return absl::UnauthenticatedError("a ticket that is unknown, used or too old");
  }
  if (!request.hello().previous_connection().empty()) {
    EndPrevious(request.hello().previous_connection());
  }
  LocalSession::Parts parts;
  parts.store = parts_.store;
  parts.rates = parts_.rates;
  parts.staging = parts_.staging;
  parts.counters = parts_.counters;
  parts.time = parts_.time;
  parts.draining = &draining_;
  const auto id = parts_.random->New<LocalConnectionId>();
  departed_.Joined(connection->key(), id, caller->tenant);
  connection->Welcome(parts, *std::move(caller), id);
  parts_.counters->connected.fetch_add(1, std::memory_order_relaxed);
  v1::LocalAnswer answer;
  answer.mutable_welcome()->set_connection(std::string(connection->id().view()));
  return connection->Send(answer, {});
}

// What it had is unmapped, says its client.
void LocalServer::EndPrevious(absl::string_view connection) {
  const std::optional<LocalConnectionId> id = LocalConnectionId::FromBytes(connection);
  if (!id.has_value()) return;
  const DepartedClients::Said said = departed_.Returned(*id);
  if (said.borrower.has_value()) parts_.store->ReturnAllSegments(*said.borrower);
  // Its end is still to be heard of, or will not come by itself.
  const ConnectionPtr old =
      said.still_connected.has_value() ? Find(*said.still_connected) : nullptr;
  if (old != nullptr) old->Cut();
}

void LocalServer::Close(const ConnectionPtr& connection) {
  {
    absl::MutexLock lock(&mutex_);
    if (connections_.erase(connection->key()) == 0) return;
  }
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->fd(), nullptr);
  parts_.counters->connections.fetch_sub(1, std::memory_order_relaxed);
  LocalSession* session = connection->session();
  if (session == nullptr) return;
  const BorrowerId borrower = session->borrower();
  if (!parts_.store->BorrowerGone(borrower)) {  // One that gave back what it got has nothing.
    departed_.Forget(connection->key());
    return;
  }
  // Known before it is watched, so that the end of its process finds it; the descriptor is kept
  // here meanwhile, since its client may speak, and be forgotten, in between.
  if (!departed_.Left(connection->key(), borrower, connection->process())) {
    parts_.store->ReturnAllSegments(borrower);
  } else if (*connection->process()) {
    Watch(connection->process()->get(), connection->key(), EPOLLIN | EPOLLONESHOT, false);
  }
}

void LocalServer::SendRecalls() {
  absl::flat_hash_map<BorrowerId, std::vector<uint64_t>> by_borrower;
  for (const SegmentRecall& recall : parts_.store->TakeRecalls()) {
    by_borrower[recall.borrower].push_back(recall.segment);
  }
  const absl::Time due = parts_.time->Now() + options_.return_within;
  for (const auto& [borrower, segments] : by_borrower) {
    const ConnectionPtr connection = Find(borrower);
    // One that has just left is departed, with what it has.
    if (connection == nullptr) continue;
    const absl::Status sent = connection->Recall(segments, due);
    if (sent.ok()) continue;
    CountCut(sent);
    connection->Cut();
  }
}

}  // namespace cairn::node
