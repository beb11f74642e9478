// Which addresses share a client, as the pointers show. Nobody listens at any of them.
#include "client/cpp/node_clients.h"

#include <gmock/gmock.h>

namespace cairn {
namespace {

class NodeClientsTest : public ::testing::Test {
 protected:
  CacheNodeClient* Get(NodeClients* clients, absl::string_view address) {
    const auto client = clients->Get(address);
    EXPECT_TRUE(client.ok()) << client.status();
    kept_.push_back(*client);  // So that no address of memory comes twice.
    return client->get();
  }

  SystemClientParts parts_;
  std::vector<std::shared_ptr<CacheNodeClient>> kept_;
};

TEST_F(NodeClientsTest, KeepsOneClientForAnAddress) {
  NodeClients clients({}, parts_.parts());
  CacheNodeClient* first = Get(&clients, "127.0.0.1:1");
  EXPECT_NE(Get(&clients, "127.0.0.1:2"), first);
  EXPECT_EQ(Get(&clients, "127.0.0.1:1"), first);
}

TEST_F(NodeClientsTest, DropsTheOneAskedForLongestAgo) {
  NodeClients clients({}, parts_.parts(), /*clients_max=*/2);
  CacheNodeClient* first = Get(&clients, "127.0.0.1:1");
  CacheNodeClient* second = Get(&clients, "127.0.0.1:2");
  EXPECT_EQ(Get(&clients, "127.0.0.1:1"), first);
  Get(&clients, "127.0.0.1:3");
  EXPECT_EQ(Get(&clients, "127.0.0.1:1"), first);
  EXPECT_NE(Get(&clients, "127.0.0.1:2"), second);
}

TEST_F(NodeClientsTest, RefusesAnAddressThatIsNone) {
  NodeClients clients({}, parts_.parts());
  EXPECT_TRUE(absl::IsInvalidArgument(clients.Get("").status()));
}

}  // namespace
}  // namespace cairn
