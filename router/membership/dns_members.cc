#include "router/membership/dns_members.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace cairn::router {

void DnsMembers::Take(absl::Span<const std::string> addresses) {
  for (auto& [address, absences] : absences_) ++absences;
  for (const std::string& host : addresses) {
    const bool is_v6 = absl::StrContains(host, ':');
    absences_[is_v6 ? absl::StrCat("[", host, "]:", port_) : absl::StrCat(host, ":", port_)] = 0;
  }
  absl::erase_if(absences_, [](const auto& entry) { return entry.second >= kAbsencesMax; });
  while (absences_.size() > kAddressesMax) absences_.erase(std::prev(absences_.end()));
}

MemberList DnsMembers::members() const {
  MemberList members;
  for (const auto& [address, absences] : absences_) members.push_back({.address = address});
  return members;
}

}  // namespace cairn::router
