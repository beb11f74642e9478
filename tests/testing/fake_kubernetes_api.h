// FakeKubernetesApi: the part of a Kubernetes API server that lists and watches EndpointSlices, on
// a free port of loopback, plain or over TLS. Fake: correct unless told otherwise, in memory, by
// the real protocol.
//
// Each write of an object is an event with the next resource version. A watch gets all events after
// the version that it names; what Compact forgot is 410. Lists have pages, whose continue tokens
// are of one version. Thread-safe. Ignores SIGPIPE in the whole process.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/testing/http_connection.h"

namespace cairn::testing {

class FakeKubernetesApi {
 public:
  struct Options {
    std::string name_space = "prod";
    std::optional<HttpConnection::Tls> tls = std::nullopt;
    // The bearer token that is good; empty: nobody is asked.
    std::string token = "";
  };
  // What was asked so far.
  struct Seen {
    int lists = 0;  // Pages of them.
    int watches = 0;
    int unauthorized = 0;
    int gone = 0;  // 410s.
  };

  explicit FakeKubernetesApi(Options options);
  ~FakeKubernetesApi();

  FakeKubernetesApi(const FakeKubernetesApi&) = delete;
  FakeKubernetesApi& operator=(const FakeKubernetesApi&) = delete;

  // https://127.0.0.1:PORT, or http.
  std::string url() const;

  // Adds the object, or changes the one of its name.
  void Put(nlohmann::json slice) ABSL_LOCKS_EXCLUDED(mutex_);
  void Delete(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises the version, as other objects do, and tells the watches by a bookmark.
  void Bookmark() ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets all events, and the pages that are still to be asked for.
  void Compact() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all connections, wherever they are.
  void HangUp() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next event breaks off in its middle, and with it its connection.
  void CutNextEvent() ABSL_LOCKS_EXCLUDED(mutex_);
  // Bodies of watches go out in writes of so many bytes.
  void WriteInPieces(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers the next requests so, with these header lines.
  void FailNext(int requests, int code, const std::string& headers = "")
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Says 410 to watches by the HTTP status instead of an event; both are seen in the field.
  void SayGoneByStatus() ABSL_LOCKS_EXCLUDED(mutex_);
  // Exchanges the token that is good.
  void SetToken(const std::string& token) ABSL_LOCKS_EXCLUDED(mutex_);

  Seen seen() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Until a watch is open and was sent all events; false after `timeout`.
  bool AwaitWatched(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Event {
    uint64_t version = 0;
    std::string type;
    nlohmann::json object;
  };
  // A watch that is open.
  struct Watch {
    uint64_t sent = 0;      // All events up to this version.
    uint64_t bookmark = 0;  // The last one.
    bool wants_bookmarks = false;
    std::string service;
  };

  void Accept();
  void Serve(HttpConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // False when the connection is over.
  bool Answer(const HttpRequest& request, HttpConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  bool AnswerList(const HttpRequest& request, HttpConnection* connection)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool AnswerWatch(const HttpRequest& request, HttpConnection* connection)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stream(absl::Time end, Watch* watch, HttpConnection* connection) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the watch is to be sent next, each a line.
  std::vector<std::string> TakeNews(Watch* watch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFor(const std::string& service, const nlohmann::json& object) const;
  void Note(const std::string& type, nlohmann::json object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  int listen_fd_ = -1;
  int port_ = 0;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 100;
  uint64_t compacted_ ABSL_GUARDED_BY(mutex_) = 0;  // Events up to here are forgotten.
  uint64_t bookmark_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::btree_map<std::string, nlohmann::json> objects_ ABSL_GUARDED_BY(mutex_);
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  // By token: what of a list is still to come, and its version.
  absl::btree_map<std::string, std::pair<uint64_t, std::vector<nlohmann::json>>> pages_
      ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  int failure_code_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failure_headers_ ABSL_GUARDED_BY(mutex_);
  bool cut_next_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_by_status_ ABSL_GUARDED_BY(mutex_) = false;
  size_t piece_bytes_ ABSL_GUARDED_BY(mutex_) = SIZE_MAX;
  Seen seen_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<HttpConnection*> connections_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<const Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // Of connections, also past ones.
  std::thread acceptor_;
};

}  // namespace cairn::testing
