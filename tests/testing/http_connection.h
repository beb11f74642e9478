// HttpConnection: one accepted connection of a small HTTP/1.1 server, plain or over TLS.
//
// Blocking; for one thread, but for ShutDown, which any thread may call and which ends what blocks.
// Only what tests need: requests without a body, answers with a length or in chunks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/strings/string_view.h"

namespace cairn::testing {

struct HttpRequest {
  std::string method;
  std::string path;                                 // Before the query.
  absl::btree_map<std::string, std::string> query;  // Unescaped.
  std::string authorization;
};

class HttpConnection {
 public:
  // PEM, for TLS.
  struct Tls {
    std::string certificate;
    std::string key;
  };

  // Owns the socket. `tls` null: plain.
  HttpConnection(int fd, const Tls* tls);
  ~HttpConnection();

  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // The next request; nothing when there is none any more, or it is no HTTP.
  std::optional<HttpRequest> Read();

  // False when the peer is gone. `headers` are whole lines.
  bool WriteAnswer(int code, absl::string_view headers, absl::string_view body);
  bool BeginChunks();
  // In pieces of at most `piece_bytes`, each a write of its own; without the end when `cut`.
  bool WriteChunk(absl::string_view data, size_t piece_bytes = SIZE_MAX, bool cut = false);
  bool EndChunks();

  // Closed by the peer, as far as that is known; does not wait.
  bool PeerGone() const;
  void ShutDown();

 private:
  struct Session;  // OpenSSL's.

  bool Write(absl::string_view bytes);

  const int fd_;
  std::unique_ptr<Session> tls_;
  bool good_ = true;
  std::string unread_;
};

}  // namespace cairn::testing
