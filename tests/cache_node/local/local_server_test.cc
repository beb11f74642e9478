// The node's local socket before clients that break its rules: each test speaks packets itself.
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <random>

#include "tests/cache_node/local/local_server_fixture.h"

namespace cairn::node {
namespace {

TEST_F(LocalServerTest, ATicketLetsInOnce) {
  const v1::OpenLocalResponse opened = Open();
  EXPECT_EQ(opened.ticket().size(), kLocalTicketBytes);
  EXPECT_FALSE(opened.boot_id().empty());
  RawClient first(opened.socket());
  EXPECT_TRUE(first.Hello(opened.ticket()));
  RawClient second(opened.socket());
  EXPECT_FALSE(second.Hello(opened.ticket())) << "replayed";
  RawClient third(opened.socket());
  EXPECT_FALSE(third.Hello(std::string(16, 'x')));
  EXPECT_EQ(Metric("cairn_local_refused_tickets_total"), 2);
  EXPECT_TRUE(Becomes("cairn_local_connections", 1));
}

TEST_F(LocalServerTest, WhoDoesNotSayHelloIsCut) {
  RawClient silent(Open().socket());
  EXPECT_FALSE(silent.Next().has_value());
  EXPECT_EQ(Metric("cairn_local_cuts_total{reason=\"silent\"}"), 1);
  RawClient rude(Open().socket());
  EXPECT_FALSE(rude.Ask(ReadRequest()).has_value()) << "read before hello";
}

TEST_F(LocalServerTest, MemoryThatIsGivenCannotBeWritten) {
  const auto client = Connect();
  const auto answer = client->Ask(ReadRequest());
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->places().segments_size(), 1);
  ASSERT_EQ(client->descriptors.size(), 2u);
  for (const Descriptor& given : client->descriptors) {
    EXPECT_EQ(fcntl(given.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, given.get(), 0), MAP_FAILED);
    const int again = open(("/proc/self/fd/" + std::to_string(given.get())).c_str(), O_RDWR);
    if (again < 0) continue;
    EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    EXPECT_EQ(pwrite(again, "x", 1, 0), -1);
    close(again);
  }
  // A second time the descriptors are not sent again.
  const auto again = client->Ask(ReadRequest());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->places().segments_size(), 0);
  EXPECT_EQ(again->places().places(0).segment(), answer->places().places(0).segment());
}

TEST_F(LocalServerTest, RequestsThatAreWrongGetAnAnswerThatSaysSo) {
  const auto client = Connect();
  v1::LocalRequest request = ReadRequest();
  request.mutable_read()->set_keys("short");
  EXPECT_EQ(client->Ask(request)->failure().code(), 3);
  request = ReadRequest();
  request.mutable_read()->set_lease("short");
  EXPECT_EQ(client->Ask(request)->failure().code(), 3);
  request.mutable_read()->set_lease(std::string(16, 'l'));
  EXPECT_EQ(client->Ask(request)->failure().code(), 10) << "a lease that nobody has";
  request = v1::LocalRequest();
  request.mutable_put()->set_token(std::string(16, 't'));
  EXPECT_EQ(client->Ask(request)->failure().code(), 9) << "no staging memory";
  request.mutable_stage()->set_bytes(uint64_t{1} << 40);
  EXPECT_EQ(client->Ask(request)->failure().code(), 3);
  request.mutable_stage()->set_bytes(4096);
  EXPECT_GE(client->Ask(request)->staged().bytes(), 4096u);
  request.mutable_put()->set_token(std::string(16, 't'));
  v1::LocalPiece* piece = request.mutable_put()->add_pieces();
  piece->set_layers(1);
  piece->set_staging_offset(UINT64_MAX);
  piece->mutable_piece()->set_length(100);
  auto answer = client->Ask(request);
  ASSERT_EQ(answer->landed().errors_size(), 1) << answer->ShortDebugString();
  EXPECT_EQ(answer->landed().errors(0).code(), 3);
  piece->set_staging_offset(0);
  EXPECT_EQ(client->Ask(request)->landed().errors(0).code(), 10) << "a token that nobody has";
  EXPECT_FALSE(client->Ask(v1::LocalRequest()).has_value()) << "an empty packet is none";
}

TEST_F(LocalServerTest, GarbageEndsItsConnectionAndNobodyElses) {
  const auto good = Connect();
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const v1::OpenLocalResponse opened = Open();
    RawClient client(opened.socket());
    if (round % 2 == 0) {
      EXPECT_TRUE(client.Hello(opened.ticket()));
    }
    std::string garbage(1 + random() % 4096, '\xff');
    for (size_t i = 0; i < garbage.size(); i += 1 + random() % 8) {
      garbage[i] = static_cast<char>(random());
    }
    garbage[0] = '\xff';  // No tag begins so.
    client.Send(garbage);
    EXPECT_FALSE(client.Next().has_value());
  }
  EXPECT_EQ(Metric("cairn_local_cuts_total{reason=\"bad_packet\"}"), 50);
  EXPECT_EQ(good->Ask(ReadRequest())->places().places_size(), 2);
  EXPECT_TRUE(Becomes("cairn_local_connections", 1));
}

TEST_F(LocalServerTest, DescriptorsThatAClientSendsAreNotTaken) {
  constexpr int kClients = 100;
  const auto client = Connect();
  const std::string socket = Open().socket();
  const size_t before = Descriptors();
  const int fds[] = {0, 0, 0};
  for (int i = 0; i < kClients; ++i) {
    absl::StatusOr<PacketSocket> other = PacketSocket::Connect(socket);
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE(other->Send(ReadRequest().SerializeAsString(), fds).ok());
    EXPECT_TRUE(Becomes("cairn_local_cuts_total{reason=\"bad_packet\"}", i + 1));
  }
  EXPECT_TRUE(Becomes("cairn_local_connections", 1));
  // Some of gRPC's come and go meanwhile.
  EXPECT_LT(Descriptors(), before + kClients / 2);
}

TEST_F(LocalServerTest, AClientThatDoesNotReadIsCutAndTheNodeGoesOn) {
  const auto deaf = Connect();
  const auto good = Connect();
  const std::string packet = ReadRequest().SerializeAsString();
  // Until its socket is full of answers, and the node has had enough.
  for (int i = 0; i < 100'000 && Metric("cairn_local_connections") == 2; ++i) deaf->Send(packet);
  EXPECT_TRUE(Becomes("cairn_local_connections", 1));
  EXPECT_EQ(Metric("cairn_local_cuts_total{reason=\"not_reading\"}"), 1);
  EXPECT_EQ(good->Ask(ReadRequest())->places().places_size(), 2);
  EXPECT_EQ(Metric("cairn_local_shares"), 1);
}

TEST_F(LocalServerTest, SharesOfOneConnectionAreBounded) {
  // Of blocks that take little of the budget for leases.
  *name_space_ = testing::Register(**network_, testing::TinyBlocks());
  prompt_ = Prompt(2, 1);
  Put(*prompt_);
  const auto client = Connect();
  for (size_t i = 0; i < kLocalSharesMax; ++i) {
    ASSERT_TRUE(client->Ask(ReadRequest())->has_places()) << i;
  }
  EXPECT_EQ(client->Ask(ReadRequest())->failure().code(), 8);
  EXPECT_EQ(Metric("cairn_local_shares"), static_cast<double>(kLocalSharesMax));
}

TEST_F(LocalServerTest, ConnectionsAreBounded) {
  NodeConfig config = SmallConfig();
  config.local.connections_max = 2;
  StartNode(config);
  const auto first = Connect();
  const auto second = Connect();
  grpc::ClientContext context;
  v1::OpenLocalResponse response;
  auto stub = v1::CacheNode::NewStub(
      grpc::CreateChannel(node_->addresses()[0], grpc::InsecureChannelCredentials()));
  EXPECT_EQ(stub->OpenLocal(&context, {}, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(LocalServerTest, ASocketAtAPathIsThereWhileItsNodeIsAndIsMadeAnewAfterACrash) {
  const std::string path = ::testing::TempDir() + "/cairn_local_server_test.socket";
  NodeConfig config = SmallConfig();
  config.local.socket = path;
  {
    // What a node that was killed leaves behind.
    unlink(path.c_str());
    ASSERT_TRUE(PacketSocket::Listen(path, 1).ok());
  }
  StartNode(config);
  EXPECT_EQ(Open().socket(), path);
  const auto client = Connect();
  config.node_id = "other";
  const absl::Status second = Node::Start(config).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition) << "somebody listens there";
  node_ = nullptr;
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(LocalServerTest, WhatAClientGetsAfterItGaveAllBackIsKnownToBeWithIt) {
  auto client = Connect();
  ASSERT_EQ(client->Ask(ReadRequest())->places().segments_size(), 1);
  v1::LocalRequest all;
  all.mutable_unmapped()->set_all(true);
  client->Send(all);
  EXPECT_TRUE(Becomes("cairn_local_lent_segments", 0));
  ASSERT_EQ(client->Ask(ReadRequest())->places().segments_size(), 1);
  const std::string connection = client->connection;
  client = nullptr;
  EXPECT_TRUE(Becomes("cairn_local_connections", 0));
  EXPECT_EQ(Metric("cairn_local_lent_segments"), 1);
  // Until it says so in its next hello.
  client = Connect(connection);
  EXPECT_EQ(Metric("cairn_local_lent_segments"), 0);
}

TEST_F(LocalServerTest, TenThousandConnectionsLeaveNoDescriptor) {
  const auto channel =
      grpc::CreateChannel(node_->addresses()[0], grpc::InsecureChannelCredentials());
  const auto stub = v1::CacheNode::NewStub(channel);
  size_t before = 0;
  for (int i = 0; i < 10'000; ++i) {
    grpc::ClientContext context;
    v1::OpenLocalResponse opened;
    ASSERT_TRUE(stub->OpenLocal(&context, {}, &opened).ok());
    RawClient client(opened.socket());
    ASSERT_TRUE(client.Hello(opened.ticket())) << i;
    // Some get memory, of these some say that they unmapped it.
    if (i % 100 < 50) {
      ASSERT_EQ(client.Ask(ReadRequest())->places().places_size(), 2);
      v1::LocalRequest request;
      request.mutable_unmapped()->set_all(true);
      client.Send(request);
    }
    if (i == 100) {
      ASSERT_TRUE(Becomes("cairn_local_connections", 1));
      before = Descriptors();
    }
  }
  EXPECT_TRUE(Becomes("cairn_local_connections", 0));
  EXPECT_LE(Descriptors(), before);
  EXPECT_TRUE(AwaitNoPins());
}

}  // namespace
}  // namespace cairn::node
