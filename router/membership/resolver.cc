#include "router/membership/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/str_cat.h"

namespace cairn::router {

absl::StatusOr<std::vector<std::string>> SystemResolver::Resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(
      list, [](addrinfo* of) { freeaddrinfo(of); });
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat(host, " has no address: ", gai_strerror(failed)));
  }
  std::vector<std::string> addresses;
  for (const addrinfo* of = list; of != nullptr; of = of->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (getnameinfo(of->ai_addr, of->ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      addresses.emplace_back(text.data());
    }
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (addresses.empty()) return absl::UnavailableError(absl::StrCat(host, " has no address"));
  return addresses;
}

}  // namespace cairn::router
