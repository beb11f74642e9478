// PeerList: the nodes that this node may pull from, as an operator's file lists them. A value.
//
//     # node id   address
//     node-2      10.0.3.12:7070
//
// Nobody who calls names an address: what is not in the file is not connected to.
#pragma once

#include <cstddef>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cairn::node {

inline constexpr size_t kPeersMax = 4096;

class PeerList {
 public:
  // Strict. INVALID_ARGUMENT naming `file`, the line, what is wrong with it and what to write.
  static absl::StatusOr<PeerList> Parse(absl::string_view text, absl::string_view file);

  // Address of a node; null when it is not listed.
  const std::string* Find(absl::string_view node_id) const;
  size_t size() const { return addresses_.size(); }

 private:
  absl::btree_map<std::string, std::string> addresses_;
};

}  // namespace cairn::node
