#include "router/membership/kubernetes/curl_transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/rpc/target.h"
#include "common/security/watched_file.h"

namespace cairn::router {
namespace {

constexpr absl::string_view kTls = "https://";
constexpr absl::string_view kPlain = "http://";
constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
// A peer that is gone without a word is noticed after the first and so many more.
constexpr long kKeepaliveSeconds = 20;
constexpr absl::Duration kPoll = absl::Seconds(1);

struct Free {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// What the callbacks of a request know.
struct Answer {
  CURL* easy = nullptr;
  AnswerReader* reader = nullptr;
  bool began = false;
  absl::Status refused;  // By the reader.
};

void Begin(Answer* answer) {
  if (std::exchange(answer->began, true)) return;
  long code = 0;
  curl_off_t retry_after = 0;
  curl_easy_getinfo(answer->easy, CURLINFO_RESPONSE_CODE, &code);
  curl_easy_getinfo(answer->easy, CURLINFO_RETRY_AFTER, &retry_after);
  answer->reader->OnStatus(static_cast<int>(code), absl::Seconds(retry_after));
}

size_t OnBody(char* data, size_t size, size_t count, void* user) {
  auto* const answer = static_cast<Answer*>(user);
  Begin(answer);
  answer->refused = answer->reader->OnBytes({data, size * count});
  return answer->refused.ok() ? size * count : 0;
}

// The empty line ends the header: a watch may stay without a body for long.
size_t OnHeader(char* data, size_t size, size_t count, void* user) {
  const absl::string_view line(data, size * count);
  long code = 0;
  auto* const answer = static_cast<Answer*>(user);
  curl_easy_getinfo(answer->easy, CURLINFO_RESPONSE_CODE, &code);
  if ((line == "\r\n" || line == "\n") && code >= 200) Begin(answer);
  return size * count;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  absl::StatusOr<std::string> text = ReadSecurityFile(path);
  if (!text.ok()) return absl::UnavailableError(text.status().message());
  const absl::string_view token = absl::StripAsciiWhitespace(*text);
  const bool good = !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!good) return absl::UnavailableError(absl::StrCat(path, " holds no token"));
  return std::string(token);
}

template <typename Value>
void Set(CURL* easy, CURLoption option, Value value) {
  CAIRN_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

absl::Status StatusOf(CURLcode code, const char* why, const std::string& url) {
  const std::string reason =
      absl::StrCat(url, ": ", why[0] != '\0' ? why : curl_easy_strerror(code));
  if (code == CURLE_OPERATION_TIMEDOUT) return absl::DeadlineExceededError(reason);
  return absl::UnavailableError(reason);
}

absl::Status Perform(CURLM* multi, const WakeEvent& stop, const std::string& url, const char* why,
                     Answer* answer) {
  CAIRN_CHECK(curl_multi_add_handle(multi, answer->easy) == CURLM_OK);
  const absl::Cleanup remove = [&] { curl_multi_remove_handle(multi, answer->easy); };
  int running = 1;
  while (running > 0) {
    if (stop.WaitFor(absl::ZeroDuration())) return absl::CancelledError("the router stops");
    curl_waitfd also = {stop.fd(), CURL_WAIT_POLLIN, 0};
    CURLMcode failed = curl_multi_perform(multi, &running);
    if (failed == CURLM_OK && running > 0) {
      failed = curl_multi_poll(multi, &also, 1, static_cast<int>(absl::ToInt64Milliseconds(kPoll)),
                               nullptr);
    }
    if (failed != CURLM_OK) {
      return absl::UnavailableError(absl::StrCat(url, ": ", curl_multi_strerror(failed)));
    }
  }
  int left = 0;
  const CURLMsg* const done = curl_multi_info_read(multi, &left);
  CAIRN_CHECK(done != nullptr && done->msg == CURLMSG_DONE);
  if (!answer->refused.ok()) return answer->refused;
  return done->data.result == CURLE_OK ? absl::OkStatus() : StatusOf(done->data.result, why, url);
}

}  // namespace

absl::Status CurlTransport::Validate(const Options& options) {
  absl::string_view server = options.url;
  const bool tls = absl::ConsumePrefix(&server, kTls);
  if (!tls && !absl::ConsumePrefix(&server, kPlain)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.url, "': https://HOST:PORT is wanted"));
  }
  if (absl::Status status = ValidateTarget(absl::StripSuffix(server, "/")); !status.ok()) {
    return status;
  }
  const absl::string_view host = server.substr(0, server.rfind(':'));
  if (!tls && host != "127.0.0.1" && host != "localhost" && host != "[::1]") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", options.url, "': without TLS only a proxy on loopback is asked; use https"));
  }
  if (tls && (options.ca.empty() || options.token_file.empty())) {
    return absl::InvalidArgumentError("https needs a CA and a token file");
  }
  return absl::OkStatus();
}

CurlTransport::CurlTransport(Options options) : options_(std::move(options)) {
  CAIRN_CHECK_OK(Validate(options_));
  CAIRN_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

CurlTransport::~CurlTransport() { curl_global_cleanup(); }

absl::Status CurlTransport::Get(const std::string& path, absl::Duration timeout,
                                const WakeEvent& stop, AnswerReader* reader) {
  const bool tls = absl::StartsWith(options_.url, kTls);
  const std::unique_ptr<CURLM, FreeMulti> multi(curl_multi_init());
  const std::unique_ptr<CURL, Free> easy(curl_easy_init());
  CAIRN_CHECK(multi != nullptr && easy != nullptr);
  std::unique_ptr<curl_slist, Free> headers(curl_slist_append(nullptr, "Accept: application/json"));
  Answer answer{.easy = easy.get(), .reader = reader, .began = false, .refused = {}};
  std::array<char, CURL_ERROR_SIZE> error{};
  Set(easy.get(), CURLOPT_URL, absl::StrCat(absl::StripSuffix(options_.url, "/"), path).c_str());
  Set(easy.get(), CURLOPT_PROTOCOLS_STR, tls ? "https" : "http");
  Set(easy.get(), CURLOPT_NOPROXY, "*");
  Set(easy.get(), CURLOPT_NOSIGNAL, 1L);
  Set(easy.get(), CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  Set(easy.get(), CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(kConnectTimeout)));
  Set(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(timeout)));
  Set(easy.get(), CURLOPT_TCP_KEEPALIVE, 1L);
  Set(easy.get(), CURLOPT_TCP_KEEPIDLE, kKeepaliveSeconds);
  Set(easy.get(), CURLOPT_TCP_KEEPINTVL, kKeepaliveSeconds);
  Set(easy.get(), CURLOPT_ERRORBUFFER, error.data());
  Set(easy.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  Set(easy.get(), CURLOPT_WRITEDATA, &answer);
  Set(easy.get(), CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(easy.get(), CURLOPT_HEADERDATA, &answer);
  if (tls) {
    const absl::StatusOr<std::string> token = ReadToken(options_.token_file);
    if (!token.ok()) return token.status();
    headers.reset(curl_slist_append(headers.release(),
                                    absl::StrCat("Authorization: Bearer ", *token).c_str()));
    Set(easy.get(), CURLOPT_CAINFO, options_.ca.c_str());
    // Debian's default, which would be trusted beside it.
    Set(easy.get(), CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  Set(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  return Perform(multi.get(), stop, options_.url, error.data(), &answer);
}

}  // namespace cairn::router
