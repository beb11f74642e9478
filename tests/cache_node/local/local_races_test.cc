// The node's local socket where two things happen at once, or in the order that nobody thinks of:
// what a connection held must come back whatever overtakes what.
#include <fcntl.h>

#include <thread>

#include "tests/cache_node/local/local_server_fixture.h"

namespace cairn::node {
namespace {

class LocalRacesTest : public LocalServerTest {
 protected:
  // One reader's share of a lease, to be read in place from now on.
  v1::LocalRequest HoldRequest(const LeaseId& lease, uint32_t reader) const {
    v1::LocalRequest request = ReadRequest();
    request.mutable_read()->set_lease(std::string(lease.view()));
    request.mutable_read()->set_reader(reader);
    request.mutable_read()->set_hold(true);
    return request;
  }
};

TEST_F(LocalRacesTest, ReadersOfOneLeaseOnOneConnectionAllEndWithIt) {
  auto found = (*network_)->Lookup(*name_space_, prompt_->span(), {.lease_readers = 3});
  ASSERT_TRUE(found.ok() && found->lease.has_value());
  found->lease->Release();
  auto client = Connect();
  for (const uint32_t reader : {0u, 1u, 2u}) {
    ASSERT_TRUE(client->Ask(HoldRequest(found->lease->id(), reader))->has_places()) << reader;
  }
  EXPECT_EQ(Metric("cairn_local_shares"), 3);
  client = nullptr;
  EXPECT_TRUE(AwaitNoPins());
  EXPECT_EQ(Metric("cairn_local_shares"), 0);
}

// The node hears of the new connection before it hears that the old one is over.
TEST_F(LocalRacesTest, AHelloThatOvertakesTheEndOfItsLastConnectionStillCounts) {
  auto old = Connect();
  ASSERT_EQ(old->Ask(ReadRequest())->places().segments_size(), 1);
  const auto next = Connect(old->connection);
  EXPECT_FALSE(old->Next().has_value()) << "it said that it is over";
  old = nullptr;
  EXPECT_TRUE(Becomes("cairn_local_connections", 1));
  EXPECT_TRUE(Becomes("cairn_local_lent_segments", 0));
}

TEST_F(LocalRacesTest, ClientsThatComeBackAtOnceLeaveNothingUnreturned) {
  constexpr int kClients = 4;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([this] {
      std::unique_ptr<RawClient> client = Connect();
      for (int round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(client->Ask(ReadRequest()).has_value());
        const v1::OpenLocalResponse opened = Open();
        auto next = std::make_unique<RawClient>(opened.socket());
        const std::string previous = client->connection;
        client = nullptr;  // And at once, before the node has looked:
        ASSERT_TRUE(next->Hello(opened.ticket(), previous));
        client = std::move(next);
      }
      v1::LocalRequest all;
      all.mutable_unmapped()->set_all(true);
      client->Send(all);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Becomes("cairn_local_connections", 0));
  EXPECT_TRUE(Becomes("cairn_local_lent_segments", 0));
  EXPECT_TRUE(AwaitNoPins());
}

}  // namespace
}  // namespace cairn::node
