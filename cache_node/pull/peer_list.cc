#include "cache_node/pull/peer_list.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/target.h"
#include "common/security/text_lines.h"
#include "common/wire/limits.h"

namespace cairn::node {

absl::StatusOr<PeerList> PeerList::Parse(absl::string_view text, absl::string_view file) {
  PeerList peers;
  const absl::Status status = ForEachLine(text, file, [&](absl::string_view line) -> absl::Status {
    const std::vector<absl::string_view> fields = FieldsOf(line);
    if (fields.size() != 2 || fields[0].size() > kNameBytesMax ||
        fields[1].size() > kNameBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(Shown(line), ": write a node's id and its address, as node-2 host:port"));
    }
    if (absl::Status target = ValidateTarget(fields[1]); !target.ok()) return target;
    if (!peers.addresses_.emplace(fields[0], fields[1]).second) {
      return absl::InvalidArgumentError(absl::StrCat(Shown(fields[0]), ": has a line already"));
    }
    if (peers.addresses_.size() > kPeersMax) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kPeersMax, " peers"));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return peers;
}

const std::string* PeerList::Find(absl::string_view node_id) const {
  const auto found = addresses_.find(node_id);
  return found == addresses_.end() ? nullptr : &found->second;
}

}  // namespace cairn::node
