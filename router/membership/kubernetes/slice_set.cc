#include "router/membership/kubernetes/slice_set.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn::router {
namespace {

struct Found {
  bool is_ipv6 = false;
  Member member;
};

MemberState StateOf(const SliceEndpoint& endpoint) {
  if (endpoint.terminating) return MemberState::kLeaving;
  return endpoint.ready ? MemberState::kServing : MemberState::kNotReady;
}

// What several slices say of one pod: leaving is for good, and ready is later than not.
MemberState Merge(MemberState a, MemberState b) {
  if (a == MemberState::kLeaving || b == MemberState::kLeaving) return MemberState::kLeaving;
  return a == MemberState::kServing ? a : b;
}

// Of pods at one address, the one that counts: serving before not ready before leaving.
bool GoesBefore(const Member& a, const Member& b) {
  return std::tie(a.state, a.identity) < std::tie(b.state, b.identity);
}

}  // namespace

absl::Status SliceSet::Put(EndpointSlice slice) {
  if (slices_.size() >= kSlicesMax && !slices_.contains(slice.name)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the service has more than ", kSlicesMax, " EndpointSlices"));
  }
  std::string name = slice.name;
  slices_.insert_or_assign(std::move(name), std::move(slice));
  return absl::OkStatus();
}

MemberList SliceSet::Members() const {
  absl::btree_map<std::string, Found> by_pod;
  for (const auto& [name, slice] : slices_) {
    if (slice.port == 0) continue;
    for (const SliceEndpoint& endpoint : slice.endpoints) {
      const std::string address = slice.is_ipv6 ? absl::StrCat("[", endpoint.host, "]:", slice.port)
                                                : absl::StrCat(endpoint.host, ":", slice.port);
      const MemberState state = StateOf(endpoint);
      // What is no pod is its address.
      const std::string key = endpoint.uid.empty() ? address : absl::StrCat("uid ", endpoint.uid);
      const auto [it, is_new] =
          by_pod.try_emplace(key, Found{slice.is_ipv6, {address, endpoint.uid, state}});
      if (is_new) continue;
      Found& found = it->second;
      found.member.state = Merge(found.member.state, state);
      if (found.is_ipv6 && !slice.is_ipv6) {
        found.is_ipv6 = false;
        found.member.address = address;
      }
    }
  }
  absl::btree_map<std::string, Member> by_address;
  for (auto& [pod, found] : by_pod) {
    const auto [it, is_new] = by_address.try_emplace(found.member.address, found.member);
    if (!is_new && GoesBefore(found.member, it->second)) it->second = found.member;
  }
  MemberList members;
  for (auto& [address, member] : by_address) members.push_back(std::move(member));
  return members;
}

}  // namespace cairn::router
