#include "tests/testing/http_connection.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

constexpr size_t kRequestBytesMax = size_t{64} << 10;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::string Unescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      uint32_t byte = 0;
      CAIRN_CHECK(absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte));
      plain.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::optional<HttpRequest> Parse(absl::string_view head) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || words[2] != "HTTP/1.1") return std::nullopt;
  HttpRequest request;
  request.method = std::string(words[0]);
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(words[1], absl::MaxSplits('?', 1));
  request.path = std::string(target.first);
  for (const absl::string_view field : absl::StrSplit(target.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    request.query[std::string(pair.first)] = Unescaped(pair.second);
  }
  for (const absl::string_view line : lines) {
    constexpr absl::string_view kAuthorization = "authorization:";
    if (absl::StartsWithIgnoreCase(line, kAuthorization)) {
      request.authorization =
          std::string(absl::StripAsciiWhitespace(line.substr(kAuthorization.size())));
    }
  }
  return request;
}

}  // namespace

struct HttpConnection::Session {
  Owned<SSL_CTX> context;
  Owned<SSL> ssl;
};

HttpConnection::HttpConnection(int fd, const Tls* tls) : fd_(fd) {
  if (tls == nullptr) return;
  tls_ = std::make_unique<Session>();
  tls_->context.reset(SSL_CTX_new(TLS_server_method()));
  CAIRN_CHECK(tls_->context != nullptr);
  const Owned<BIO> certificate_text(
      BIO_new_mem_buf(tls->certificate.data(), static_cast<int>(tls->certificate.size())));
  const Owned<BIO> key_text(BIO_new_mem_buf(tls->key.data(), static_cast<int>(tls->key.size())));
  const Owned<X509> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  CAIRN_CHECK(SSL_CTX_use_certificate(tls_->context.get(), certificate.get()) == 1);
  CAIRN_CHECK(SSL_CTX_use_PrivateKey(tls_->context.get(), key.get()) == 1);
  tls_->ssl.reset(SSL_new(tls_->context.get()));
  CAIRN_CHECK(tls_->ssl != nullptr && SSL_set_fd(tls_->ssl.get(), fd_) == 1);
  good_ = SSL_accept(tls_->ssl.get()) == 1;
}

HttpConnection::~HttpConnection() {
  ERR_clear_error();
  close(fd_);
}

std::optional<HttpRequest> HttpConnection::Read() {
  std::array<char, 4096> buffer{};
  size_t end = std::string::npos;
  while (good_ && (end = unread_.find("\r\n\r\n")) == std::string::npos) {
    const auto got =
        tls_ == nullptr ? recv(fd_, buffer.data(), buffer.size(), 0)
                        : SSL_read(tls_->ssl.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got <= 0 || unread_.size() > kRequestBytesMax) good_ = false;
    if (good_) unread_.append(buffer.data(), static_cast<size_t>(got));
  }
  if (!good_) return std::nullopt;
  std::optional<HttpRequest> request = Parse(absl::string_view(unread_).substr(0, end));
  unread_.erase(0, end + 4);
  return request;
}

bool HttpConnection::Write(absl::string_view bytes) {
  while (good_ && !bytes.empty()) {
    const auto sent =
        tls_ == nullptr ? send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
                        : SSL_write(tls_->ssl.get(), bytes.data(), static_cast<int>(bytes.size()));
    good_ = sent > 0;
    if (good_) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return good_;
}

bool HttpConnection::WriteAnswer(int code, absl::string_view headers, absl::string_view body) {
  return Write(absl::StrCat("HTTP/1.1 ", code, " Said\r\nContent-Type: application/json\r\n",
                            headers, "Content-Length: ", body.size(), "\r\n\r\n", body));
}

bool HttpConnection::BeginChunks() {
  return Write(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool HttpConnection::WriteChunk(absl::string_view data, size_t piece_bytes, bool cut) {
  std::string chunk = absl::StrCat(absl::Hex(data.size()), "\r\n", data, "\r\n");
  if (cut) chunk.resize(chunk.size() / 2);
  for (size_t at = 0; at < chunk.size(); at += std::min(piece_bytes, chunk.size() - at)) {
    if (!Write(absl::string_view(chunk).substr(at, piece_bytes))) return false;
  }
  return true;
}

bool HttpConnection::EndChunks() { return Write("0\r\n\r\n"); }

bool HttpConnection::PeerGone() const {
  pollfd poll_fd = {fd_, POLLRDHUP, 0};
  return !good_ || (poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP)) != 0);
}

void HttpConnection::ShutDown() { shutdown(fd_, SHUT_RDWR); }

}  // namespace cairn::testing
