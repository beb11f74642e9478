// SliceSet: the EndpointSlices of one service, and the nodes that they say there are.
//
// An endpoint may stand in several slices while they are rewritten, a pod has one in each address
// family, and an address may already be another pod's while the old one still terminates: each pod
// is one member, at one address, and each address is one member. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "router/membership/kubernetes/endpoint_slice.h"
#include "router/membership/member.h"

namespace cairn::router {

class SliceSet {
 public:
  static constexpr size_t kSlicesMax = 1024;

  // RESOURCE_EXHAUSTED at the bound, and then nothing is done.
  absl::Status Put(EndpointSlice slice);
  // One that is not there is no error.
  void Erase(absl::string_view name) { slices_.erase(std::string(name)); }

  size_t size() const { return slices_.size(); }

  // Of a pod with addresses of both families, the IPv4 one. A pod that terminates in one slice
  // does, whatever another says; of two pods at one address the one that does not.
  MemberList Members() const;

 private:
  absl::btree_map<std::string, EndpointSlice> slices_;
};

}  // namespace cairn::router
