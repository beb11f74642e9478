#include "cache_node/pull/peers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/security/text_lines.h"

namespace cairn::node {

Peers::Peers(std::unique_ptr<PeerFile> file, ClientOptions options, const ClientSecurity* security,
             const ClientParts& parts)
    : file_(std::move(file)), options_(std::move(options)), security_(security), parts_(parts) {}

absl::StatusOr<std::shared_ptr<PullSource>> Peers::Find(absl::string_view node_id) {
  if (file_ == nullptr) {
    return absl::FailedPreconditionError(
        "source: this node has no peers; start it with --peer-file");
  }
  const std::shared_ptr<const PeerList> list = file_->Get();
  const std::string* address = list->Find(node_id);
  std::vector<std::shared_ptr<PeerSource>> gone;  // Ends after the lock.
  absl::MutexLock lock(&mutex_);
  gone = TakeUnlisted(*list);
  if (address == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "source: ", Shown(node_id), " is no peer of this node; list it in ", file_->path()));
  }
  if (stopped_) return absl::UnavailableError("the node stops; use another one");
  Peer& peer = peers_[std::string(node_id)];
  if (peer.source == nullptr) {
    ClientOptions options = options_;
    options.target = *address;
    peer.address = *address;
    peer.source = std::make_shared<PeerSource>(std::string(node_id), options, security_, parts_);
  }
  return std::shared_ptr<PullSource>(peer.source);
}

std::vector<std::shared_ptr<PeerSource>> Peers::TakeUnlisted(const PeerList& list) {
  std::vector<std::shared_ptr<PeerSource>> gone;
  absl::erase_if(peers_, [&](auto& peer) {
    const std::string* now = list.Find(peer.first);
    if (now != nullptr && *now == peer.second.address) return false;
    gone.push_back(std::move(peer.second.source));
    return true;
  });
  const auto over = [](const std::weak_ptr<PeerSource>& source) { return source.expired(); };
  unlisted_.erase(std::remove_if(unlisted_.begin(), unlisted_.end(), over), unlisted_.end());
  unlisted_.insert(unlisted_.end(), gone.begin(), gone.end());
  return gone;
}

void Peers::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (const std::weak_ptr<PeerSource>& source : unlisted_) {
    if (const std::shared_ptr<PeerSource> used = source.lock()) used->Cancel();
  }
  for (auto& [id, peer] : peers_) peer.source->Cancel();
}

}  // namespace cairn::node
