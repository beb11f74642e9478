// FeedTest: a node of tiny blocks, churn in it, and watchers of its feed that read or do not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cpp/block_watcher.h"
#include "tests/cluster/mirror_reader.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {

class FeedTest : public NodeTest {
 protected:
  void Start(std::vector<std::string> flags);

  // Takes `steps` steps: puts random prompts, deletes some, clears a scope now and then. All
  // prompts together are more than twice the pool.
  void Churn(uint64_t seed, int steps);

  // The mirror comes to hold what the node describes, and missed nothing on the way there.
  void ExpectAgreement(MirrorReader& mirror, const std::string& which);

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

// A watcher that follows the feed until every shard is in, and then reads no more.
class StuckWatcher {
 public:
  explicit StuckWatcher(const std::string& address);

  // The next message, which comes soon.
  absl::Status Read();
  // Reads what still comes; how the feed ended, or OK when it does not soon.
  absl::Status End();

 private:
  std::unique_ptr<v1::CacheNode::Stub> stub_;
  BlockWatcher watcher_;
};

}  // namespace cairn::testing
