// Connections as our programs set them up: what becomes of them when they are old, and when a name
// moves to another address. Over loopback, whose whole 127.0.0.0/8 is one's own; names come from a
// fake DNS server.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/rpc/channel_options.h"
#include "tests/common/rpc/fake_dns.h"
#include "tests/common/rpc/frame_server.h"

namespace cairn::testing {
namespace {

using Stream = grpc::ClientReaderWriter<v1::WriteRequest, v1::WriteResponse>;

std::unique_ptr<v1::CacheNode::Stub> Connect(const std::string& target) {
  return v1::CacheNode::NewStub(grpc::CreateCustomChannel(
      target, grpc::InsecureChannelCredentials(), MakeChannelArguments()));
}

std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  return context;
}

bool Exchange(Stream* stream) {
  v1::WriteResponse response;
  return stream->Write(v1::WriteRequest()) && stream->Read(&response);
}

// One call of one message.
bool Call(v1::CacheNode::Stub* stub) {
  const auto context = Context();
  const std::unique_ptr<Stream> stream = stub->Write(context.get());
  const bool exchanged = Exchange(stream.get());
  stream->WritesDone();
  return stream->Finish().ok() && exchanged;
}

TEST(ConnectionTest, OldOneTakesNoNewCallAndCutsNone) {
  FrameServer server({.connection_age = absl::Milliseconds(200)});
  const std::unique_ptr<v1::CacheNode::Stub> stub = Connect(server.address());
  const auto context = Context();
  const std::unique_ptr<Stream> old = stub->Write(context.get());
  ASSERT_TRUE(Exchange(old.get()));
  ASSERT_EQ(server.peers().size(), 1u);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (server.peers().size() < 3 && absl::Now() < deadline) {
    Call(stub.get());  // One that meets a connection's end may fail, and is made again.
    ASSERT_TRUE(Exchange(old.get()));
  }
  EXPECT_GE(server.peers().size(), 3u) << "new connections were made";
  old->WritesDone();
  EXPECT_TRUE(old->Finish().ok()) << "the first one's call went on all the while";
}

TEST(ConnectionTest, NameThatMovedIsLookedUpAgain) {
  FakeDns dns(2);
  auto there = std::make_unique<FrameServer>(ServerOptions{}, "127.0.0.2:0");
  const int port = there->port();
  const FrameServer here(ServerOptions{}, absl::StrCat("127.0.0.3:", port));
  const std::unique_ptr<v1::CacheNode::Stub> stub = Connect(dns.TargetOf("node.test", port));
  ASSERT_TRUE(Call(stub.get()));
  ASSERT_TRUE(here.peers().empty());
  dns.MoveTo(3);
  there = nullptr;
  // gRPC's own bound between two lookups is 30 s.
  const absl::Time deadline = absl::Now() + absl::Seconds(15);
  while (!Call(stub.get()) && absl::Now() < deadline) {
  }
  EXPECT_FALSE(here.peers().empty()) << dns.questions() << " questions asked";
}

}  // namespace
}  // namespace cairn::testing
