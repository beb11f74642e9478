// LocalNodeTest: a whole node in this process with its local socket, the clients of it, and the
// vocabulary of tests about memory in place of connections.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "cache_node/service/node.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/test_client.h"

namespace cairn::node {

class LocalNodeTest : public ::testing::Test {
 protected:
  // Small, on free ports; one memory segment is 1 MiB.
  static NodeConfig SmallConfig();
  void StartNode(const NodeConfig& config = SmallConfig());

  std::unique_ptr<testing::TestClient> NewClient(bool use_local = true) const;
  // Writes it whole, by a client that uses the network.
  void Put(const testing::NumberedPrompt& prompt);
  std::unique_ptr<testing::NumberedPrompt> Prompt(uint32_t number, size_t blocks);
  // What the node says of itself.
  double Metric(const std::string& series) const;
  // Waits until it is so; false after a while.
  bool Becomes(const std::string& series, double value) const;
  bool AwaitNoPins() const;
  // Open descriptors of this process.
  static size_t Descriptors();

  std::unique_ptr<Node> node_;
  std::unique_ptr<testing::TestClient> network_;  // Uses no memory.
  std::unique_ptr<NamespaceHandle> name_space_;
};

}  // namespace cairn::node
