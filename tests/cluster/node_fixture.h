// NodeTest: a fixture with the real node as a process, actors, and questions about the node.
//
// Prints the node's and the actors' logs when a test failed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "cairn/v1/cache_node.pb.h"
#include "gmock/gmock.h"
#include "tests/cluster/test_client.h"
#include "tests/testing/child_process.h"
#include "tests/testing/server_process.h"

namespace cairn::testing {

// Longest wait for what is to happen soon: far more than it takes, for machines that are busy.
inline constexpr absl::Duration kSoon = absl::Seconds(30);

class NodeTest : public ::testing::Test {
 protected:
  NodeTest();
  ~NodeTest() override;

  // Starts the node; the test fails when it does not get ready.
  void StartNode(std::vector<std::string> flags);
  ServerProcess& node() { return *node_; }
  std::unique_ptr<TestClient> NewClient() const;
  // For logs, which are printed when the test failed.
  const std::string& folder() const { return folder_; }

  // Starts an actor with these flags beside --node.
  std::unique_ptr<ChildProcess> StartActor(const std::string& role,
                                           const std::vector<std::string>& flags);

  v1::DescribeResponse Describe(bool shards = false);
  // Asks until the answer fulfils `condition`; false after `bound`.
  bool AwaitDescribe(absl::FunctionRef<bool(const v1::DescribeResponse&)> condition,
                     absl::Duration bound = kSoon);

 private:
  const std::string folder_;
  std::unique_ptr<ServerProcess> node_;
  std::unique_ptr<TestClient> asker_;
  int actors_ = 0;
};

// The next line of a process, which is to begin with `start`; what follows that. The test fails
// when it is another, or does not come soon.
std::string Expect(ChildProcess& process, const std::string& start);
// Tells a process to go on, and expects its next line.
std::string GoOn(ChildProcess& process, const std::string& start);

// Nothing is pinned, leased, reserved or on its way. (A token whose blocks are all there stays
// known until it expires, so that a repeated Commit gets its answer; it holds nothing.)
bool IsIdle(const v1::DescribeResponse& node);

}  // namespace cairn::testing
