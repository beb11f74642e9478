#include "tests/testing/fake_kubernetes_api.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

using nlohmann::json;

constexpr absl::string_view kServiceLabel = "kubernetes.io/service-name";
// Between two looks at whether the peer of a watch is still there.
constexpr absl::Duration kLook = absl::Milliseconds(20);

json StatusObject(int code, const std::string& message) {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"status", "Failure"},
          {"message", message},
          {"code", code}};
}

uint64_t NumberOf(const HttpRequest& request, const std::string& field, uint64_t otherwise) {
  const auto found = request.query.find(field);
  uint64_t number = 0;
  if (found == request.query.end() || !absl::SimpleAtoi(found->second, &number)) return otherwise;
  return number;
}

std::string TextOf(const HttpRequest& request, const std::string& field) {
  const auto found = request.query.find(field);
  return found == request.query.end() ? "" : found->second;
}

// Of the only kind of selector that is understood; "" selects all.
std::string ServiceOf(const HttpRequest& request) {
  const std::string selector = TextOf(request, "labelSelector");
  absl::string_view service = selector;
  CAIRN_CHECK(selector.empty() || absl::ConsumePrefix(&service, absl::StrCat(kServiceLabel, "=")));
  return std::string(service);
}

}  // namespace

FakeKubernetesApi::FakeKubernetesApi(Options options)
    : options_(std::move(options)), token_(options_.token) {
  std::signal(SIGPIPE, SIG_IGN);
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  CAIRN_CHECK(bind(listen_fd_, any, length) == 0 && listen(listen_fd_, 64) == 0);
  CAIRN_CHECK(getsockname(listen_fd_, any, &length) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeKubernetesApi::~FakeKubernetesApi() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  HangUp();
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    threads = std::exchange(threads_, {});
  }
  for (std::thread& thread : threads) thread.join();
  close(listen_fd_);
}

std::string FakeKubernetesApi::url() const {
  return absl::StrCat(options_.tls.has_value() ? "https" : "http", "://127.0.0.1:", port_);
}

void FakeKubernetesApi::Note(const std::string& type, json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (type != "DELETED") objects_[object["metadata"]["name"].get<std::string>()] = object;
  events_.push_back({version_, type, std::move(object)});
}

void FakeKubernetesApi::Put(json slice) {
  absl::MutexLock lock(&mutex_);
  const bool known = objects_.contains(slice["metadata"]["name"].get<std::string>());
  Note(known ? "MODIFIED" : "ADDED", std::move(slice));
}

void FakeKubernetesApi::Delete(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(name);
  CAIRN_CHECK(found != objects_.end());
  json object = std::move(found->second);
  objects_.erase(found);
  Note("DELETED", std::move(object));
}

void FakeKubernetesApi::Bookmark() {
  absl::MutexLock lock(&mutex_);
  bookmark_ = ++version_;
}

void FakeKubernetesApi::Compact() {
  absl::MutexLock lock(&mutex_);
  compacted_ = version_;
  events_.clear();
  pages_.clear();
}

void FakeKubernetesApi::HangUp() {
  absl::MutexLock lock(&mutex_);
  for (HttpConnection* const connection : connections_) connection->ShutDown();
}

void FakeKubernetesApi::CutNextEvent() {
  absl::MutexLock lock(&mutex_);
  cut_next_ = true;
}

void FakeKubernetesApi::WriteInPieces(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  piece_bytes_ = bytes;
}

void FakeKubernetesApi::FailNext(int requests, int code, const std::string& headers) {
  absl::MutexLock lock(&mutex_);
  failures_ = requests;
  failure_code_ = code;
  failure_headers_ = headers;
}

void FakeKubernetesApi::SayGoneByStatus() {
  absl::MutexLock lock(&mutex_);
  gone_by_status_ = true;
}

void FakeKubernetesApi::SetToken(const std::string& token) {
  absl::MutexLock lock(&mutex_);
  token_ = token;
}

FakeKubernetesApi::Seen FakeKubernetesApi::seen() const {
  absl::MutexLock lock(&mutex_);
  return seen_;
}

bool FakeKubernetesApi::AwaitWatched(absl::Duration timeout) const {
  const auto watched = [this] {
    mutex_.AssertReaderHeld();
    const uint64_t last = events_.empty() ? compacted_ : events_.back().version;
    return std::any_of(watches_.begin(), watches_.end(),
                       [last](const Watch* watch) { return watch->sent >= last; });
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&watched), timeout);
}

void FakeKubernetesApi::Accept() {
  while (true) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    absl::MutexLock lock(&mutex_);
    if (stopping_ || fd < 0) {
      if (fd >= 0) close(fd);
      return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    threads_.emplace_back([this, fd] {
      HttpConnection connection(fd, options_.tls.has_value() ? &*options_.tls : nullptr);
      Serve(&connection);
    });
  }
}

void FakeKubernetesApi::Serve(HttpConnection* connection) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    connections_.insert(connection);
  }
  while (true) {
    const std::optional<HttpRequest> request = connection->Read();
    if (!request.has_value() || !Answer(*request, connection)) break;
  }
  absl::MutexLock lock(&mutex_);
  connections_.erase(connection);
}

bool FakeKubernetesApi::Answer(const HttpRequest& request, HttpConnection* connection) {
  int code = 0;
  std::string headers;
  {
    absl::MutexLock lock(&mutex_);
    if (!token_.empty() && request.authorization != absl::StrCat("Bearer ", token_)) {
      ++seen_.unauthorized;
      code = 401;
    } else if (failures_ > 0) {
      --failures_;
      code = failure_code_;
      headers = failure_headers_;
    } else if (request.method != "GET" ||
               request.path != absl::StrCat("/apis/discovery.k8s.io/v1/namespaces/",
                                            options_.name_space, "/endpointslices")) {
      code = 404;
    }
  }
  if (code != 0) {
    return connection->WriteAnswer(code, headers,
                                   StatusObject(code, absl::StrCat("said ", code)).dump());
  }
  return TextOf(request, "watch") == "1" ? AnswerWatch(request, connection)
                                         : AnswerList(request, connection);
}

bool FakeKubernetesApi::AnswerList(const HttpRequest& request, HttpConnection* connection) {
  json page = {{"kind", "EndpointSliceList"}, {"apiVersion", "discovery.k8s.io/v1"}};
  const std::string token = TextOf(request, "continue");
  const uint64_t limit = NumberOf(request, "limit", UINT64_MAX);
  bool expired = false;
  {
    absl::MutexLock lock(&mutex_);
    ++seen_.lists;
    std::pair<uint64_t, std::vector<json>> rest = {version_, {}};
    if (token.empty()) {
      for (const auto& [name, object] : objects_) {
        if (IsFor(ServiceOf(request), object)) rest.second.push_back(object);
      }
    } else if (const auto found = pages_.find(token); found != pages_.end()) {
      rest = found->second;
    } else {
      ++seen_.gone;
      expired = true;
    }
    const auto count = static_cast<ptrdiff_t>(std::min<uint64_t>(limit, rest.second.size()));
    page["items"] = std::vector<json>(rest.second.begin(), rest.second.begin() + count);
    page["metadata"] = {{"resourceVersion", std::to_string(rest.first)}};
    rest.second.erase(rest.second.begin(), rest.second.begin() + count);
    if (!rest.second.empty()) {
      const std::string next = absl::StrCat("page/", seen_.lists, "=");
      page["metadata"]["continue"] = next;
      pages_[next] = std::move(rest);
    }
  }
  if (expired) {
    const json status = StatusObject(410, "the continue token expired");
    return connection->WriteAnswer(410, "", status.dump());
  }
  return connection->WriteAnswer(200, "", page.dump());
}

bool FakeKubernetesApi::AnswerWatch(const HttpRequest& request, HttpConnection* connection) {
  Watch watch;
  watch.sent = NumberOf(request, "resourceVersion", 0);
  watch.wants_bookmarks = TextOf(request, "allowWatchBookmarks") == "true";
  watch.service = ServiceOf(request);
  bool gone = false;
  bool by_status = false;
  {
    absl::MutexLock lock(&mutex_);
    ++seen_.watches;
    watch.bookmark = bookmark_;
    gone = watch.sent < compacted_;
    by_status = gone_by_status_;
    if (gone) ++seen_.gone;
    if (!gone) watches_.insert(&watch);
  }
  const json too_old = StatusObject(410, "too old resource version");
  if (gone && by_status) return connection->WriteAnswer(410, "", too_old.dump());
  if (!connection->BeginChunks()) gone = true;
  if (gone) {
    return connection->WriteChunk(json{{"type", "ERROR"}, {"object", too_old}}.dump() + "\n") &&
           connection->EndChunks();
  }
  const absl::Duration length = absl::Seconds(NumberOf(request, "timeoutSeconds", 300));
  const bool goes_on = Stream(absl::Now() + length, &watch, connection);
  absl::MutexLock lock(&mutex_);
  watches_.erase(&watch);
  return goes_on;
}

bool FakeKubernetesApi::Stream(absl::Time end, Watch* watch, HttpConnection* connection) {
  while (absl::Now() < end && !connection->PeerGone()) {
    std::vector<std::string> news;
    size_t piece_bytes = 0;
    bool cut = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_news = [this, watch] {
        mutex_.AssertReaderHeld();
        return stopping_ || (!events_.empty() && events_.back().version > watch->sent) ||
               bookmark_ > watch->bookmark;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&has_news), kLook);
      if (stopping_) return false;
      news = TakeNews(watch);
      piece_bytes = piece_bytes_;
      if (!news.empty()) cut = std::exchange(cut_next_, false);
    }
    for (const std::string& line : news) {
      if (!connection->WriteChunk(line, piece_bytes, cut)) return false;
      if (cut) connection->ShutDown();
      if (cut) return false;
    }
  }
  return connection->EndChunks();
}

std::vector<std::string> FakeKubernetesApi::TakeNews(Watch* watch) {
  std::vector<std::string> news;
  for (const Event& event : events_) {
    if (event.version <= watch->sent) continue;
    watch->sent = event.version;
    if (!IsFor(watch->service, event.object)) continue;
    news.push_back(json{{"type", event.type}, {"object", event.object}}.dump() + "\n");
  }
  // Versions never go back: after a later event a bookmark says nothing.
  if (watch->wants_bookmarks && bookmark_ > watch->bookmark && bookmark_ > watch->sent) {
    watch->sent = bookmark_;
    const json object = {{"kind", "EndpointSlice"},
                         {"metadata", {{"resourceVersion", std::to_string(bookmark_)}}}};
    news.push_back(json{{"type", "BOOKMARK"}, {"object", object}}.dump() + "\n");
  }
  watch->bookmark = bookmark_;
  return news;
}

bool FakeKubernetesApi::IsFor(const std::string& service, const json& object) const {
  if (service.empty()) return true;
  const json& metadata = object["metadata"];
  return metadata.contains("labels") && metadata["labels"].value(kServiceLabel, "") == service;
}

}  // namespace cairn::testing
