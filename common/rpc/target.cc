#include "common/rpc/target.h"

#include <sys/un.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/wire/limits.h"

namespace cairn {
namespace {

constexpr int kPortMax = 65535;

absl::Status Malformed(absl::string_view target, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("'", target.substr(0, kNameBytesMax),
                                                 "' is no address to connect to: ", why,
                                                 "; write host:port, [v6]:port, or unix:/path"));
}

bool IsDigit(char c) { return '0' <= c && c <= '9'; }
bool IsHostByte(char c) { return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_'; }
// With the name of an interface, as in fe80::1%eth0.
bool IsIpv6Byte(char c) { return IsHostByte(c) || c == ':' || c == '%'; }

}  // namespace

absl::Status ValidateTarget(absl::string_view target) {
  if (target.empty()) return Malformed(target, "it is empty");
  if (target.size() > kNameBytesMax) return Malformed(target, "it is too long");
  absl::string_view rest = target;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (!absl::StartsWith(rest, "/")) return Malformed(target, "a Unix socket needs a whole path");
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) return Malformed(target, "it is too long");
    return absl::OkStatus();
  }
  const size_t colon = target.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(target, "there is no port");
  const absl::string_view port_text = target.substr(colon + 1);
  int port = 0;
  if (!std::all_of(port_text.begin(), port_text.end(), IsDigit) ||
      !absl::SimpleAtoi(port_text, &port) || port < 1 || port > kPortMax) {
    return Malformed(target, absl::StrCat("the port is not a number from 1 to ", kPortMax));
  }
  absl::string_view host = target.substr(0, colon);
  const bool brackets = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (host.empty()) return Malformed(target, "there is no host");
  if (!std::all_of(host.begin(), host.end(), brackets ? IsIpv6Byte : IsHostByte)) {
    return Malformed(target, "the host is neither a name nor numeric");
  }
  return absl::OkStatus();
}

}  // namespace cairn
