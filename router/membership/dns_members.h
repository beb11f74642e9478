// DnsMembers: the nodes of a name, from one answer to the next.
//
// Each address is a node. One that an answer leaves out stays for a few answers more: servers that
// rotate give subsets. An answer that failed changes nothing. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"
#include "router/membership/member.h"

namespace cairn::router {

class DnsMembers {
 public:
  // An address is dropped with the so many-th answer in a row that lacks it.
  static constexpr int kAbsencesMax = 3;
  // Kept at once; of more, the first in order.
  static constexpr size_t kAddressesMax = 4096;

  explicit DnsMembers(uint16_t port) : port_(port) {}

  // Takes an answer: numeric addresses.
  void Take(absl::Span<const std::string> addresses);

  MemberList members() const;

 private:
  const uint16_t port_;
  absl::btree_map<std::string, int> absences_;  // By host:port, in a row.
};

}  // namespace cairn::router
