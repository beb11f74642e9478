#include "cache_node/service/public_watch.h"

#include <utility>
#include <vector>

#include "common/security/server_security.h"

namespace cairn::node {

PublicWatch::PublicWatch(std::unique_ptr<PublicPrefixFile> file, BlockStore* store,
                         Metrics* metrics, FileWatch::Log log)
    : scope_(std::move(file), store) {
  watch_.emplace(std::vector<FileWatch::File>{{"public-prefix", [this] { return scope_.Poll(); }}},
                 std::move(log));
  refused_ = metrics->AddCallback(
      CallbackKind::kCounter, "cairn_node_public_refused_total",
      "Reserves of the tenant public by who may not, or of what is not listed.",
      [this] { return static_cast<double>(scope_.refused()); });
  removed_blocks_ = metrics->AddCallback(
      CallbackKind::kCounter, "cairn_node_public_removed_blocks_total",
      "Blocks of the tenant public that the list of prefixes no longer led to.",
      [this] { return static_cast<double>(scope_.removed_blocks()); });
}

void PublicWatch::Start() {
  watch_->PollAll();
  watch_->Start(kSecurityPollInterval);
}

}  // namespace cairn::node
