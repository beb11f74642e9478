// Starts servers on free ports of loopback and calls them through generic stubs: health by messages
// written by hand, a typed service, and a generic one that answers what no other takes.
#include "common/server/rpc_server.h"

#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNodeName[] = "cairn.v1.CacheNode";
// grpc.health.v1.HealthCheckResponse with field 1 (status) SERVING or NOT_SERVING.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

class NodeService final : public v1::CacheNode::CallbackService {
 public:
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* /*request*/,
                                     v1::DescribeResponse* /*response*/) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    entered.Notify();
    if (hold) {
      // Ends when it is cancelled, which Shutdown does after its grace.
      std::thread([context, reactor] {
        while (!context->IsCancelled()) std::this_thread::yield();
        reactor->Finish(grpc::Status::CANCELLED);
      }).detach();
    } else {
      reactor->Finish(grpc::Status::OK);
    }
    return reactor;
  }

  bool hold = false;
  absl::Notification entered;
};

// Ends every call with a message that says which method it was.
class EchoGeneric final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* ctx) override {
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(const std::string& method) {
        Finish(grpc::Status(grpc::StatusCode::ABORTED, absl::StrCat("generic ", method)));
      }
      void OnDone() override { delete this; }
    };
    return new Reactor(ctx->method());
  }
};

struct Answer {
  grpc::Status status;
  std::string bytes;
};

Answer Call(const std::string& address, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const grpc::Slice slice(request);
  const grpc::ByteBuffer request_buffer(&slice, 1);
  grpc::ByteBuffer response_buffer;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request_buffer, &response_buffer,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  Answer answer{done.get_future().get(), ""};
  std::vector<grpc::Slice> slices;
  if (answer.status.ok() && response_buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices) {
      answer.bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  return answer;
}

Answer CheckHealth(const RpcServer& server, const std::string& service) {
  std::string request;
  if (!service.empty()) {
    request = absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())), service);
  }
  return Call(server.addresses()[0].ToString(), "/grpc.health.v1.Health/Check", request);
}

class RpcServerTest : public ::testing::Test {
 protected:
  RpcServer::Options Options(std::vector<std::string> addresses = {"127.0.0.1:0"}) {
    RpcServer::Options options;
    options.listen_addresses = std::move(addresses);
    options.insecure = true;
    options.services = {RpcServer::Named<v1::CacheNode>(&service_)};
    return options;
  }

  static std::unique_ptr<RpcServer> Started(RpcServer::Options options) {
    auto server = RpcServer::Start(std::move(options));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }

  NodeService service_;
  EchoGeneric generic_;
};

TEST_F(RpcServerTest, ServesTheServicesItWasGiven) {
  const auto server = Started(Options());
  ASSERT_NE(server, nullptr);
  ASSERT_GT(server->addresses()[0].port(), 0);
  EXPECT_TRUE(
      Call(server->addresses()[0].ToString(), "/cairn.v1.CacheNode/Describe", "").status.ok());
}

TEST_F(RpcServerTest, ListensOnEveryAddress) {
  std::string directory = absl::StrCat(::testing::TempDir(), "/rpcXXXXXX");
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const auto server =
      Started(Options({"127.0.0.1:0", absl::StrCat("unix:", directory, "/s"), "127.0.0.1:0"}));
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(server->addresses().size(), 3);
  EXPECT_NE(server->addresses()[0].port(), server->addresses()[2].port());
  for (const ListenAddress& address : server->addresses()) {
    EXPECT_EQ(Call(address.ToString(), "/grpc.health.v1.Health/Check", "").bytes, kServing);
  }
  std::filesystem::remove_all(directory);
}

TEST_F(RpcServerTest, LivenessIsThereFromTheStartAndReadinessWhenSaid) {
  const auto server = Started(Options());
  ASSERT_NE(server, nullptr);
  for (const char* name : {"", "liveness"}) EXPECT_EQ(CheckHealth(*server, name).bytes, kServing);
  for (const char* name : {"readiness", kNodeName}) {
    EXPECT_EQ(CheckHealth(*server, name).bytes, kNotServing) << name;
  }
  server->SetReady(true);
  for (const char* name : {"", "liveness", "readiness", kNodeName}) {
    EXPECT_EQ(CheckHealth(*server, name).bytes, kServing) << name;
  }
  server->SetReady(false);
  EXPECT_EQ(CheckHealth(*server, "liveness").bytes, kServing);
  EXPECT_EQ(CheckHealth(*server, kNodeName).bytes, kNotServing);
}

TEST_F(RpcServerTest, HealthOfAServiceThatIsNotServedIsNotFound) {
  const auto server = Started(Options());
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(CheckHealth(*server, "cairn.v1.Router").status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcServerTest, AServiceThatTheGenericOneServesHasHealthToo) {
  RpcServer::Options options = Options();
  options.generic = &generic_;
  options.other_service_names = {"cairn.v1.Blocks"};
  const auto server = Started(std::move(options));
  ASSERT_NE(server, nullptr);
  server->SetReady(true);
  EXPECT_EQ(CheckHealth(*server, "cairn.v1.Blocks").bytes, kServing);
}

TEST_F(RpcServerTest, TheGenericServiceGetsOnlyWhatNoOtherTakes) {
  RpcServer::Options options = Options();
  options.generic = &generic_;
  const auto server = Started(std::move(options));
  ASSERT_NE(server, nullptr);
  const std::string address = server->addresses()[0].ToString();
  EXPECT_TRUE(Call(address, "/cairn.v1.CacheNode/Describe", "").status.ok());
  EXPECT_EQ(Call(address, "/any.Service/Method", "x").status.error_message(),
            "generic /any.Service/Method");
}

TEST_F(RpcServerTest, ReflectionNamesTheServices) {
  const auto server = Started(Options());
  ASSERT_NE(server, nullptr);
  // ServerReflectionRequest with field 7 (list_services) "*".
  grpc::GenericStub stub(
      grpc::CreateChannel(server->addresses()[0].ToString(), grpc::InsecureChannelCredentials()));
  const Answer answer =
      Call(server->addresses()[0].ToString(),
           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.bytes, AllOf(HasSubstr(kNodeName), HasSubstr("grpc.health.v1.Health")));
}

TEST_F(RpcServerTest, TheHookSetsTheBuilderUp) {
  RpcServer::Options options = Options();
  options.configure = [](grpc::ServerBuilder& builder) { builder.SetMaxReceiveMessageSize(10); };
  const auto server = Started(std::move(options));
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(
      Call(server->addresses()[0].ToString(), "/cairn.v1.CacheNode/Describe", std::string(11, 'x'))
          .status.error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(RpcServerTest, WithoutInsecureItRefusesAndSaysSo) {
  RpcServer::Options options = Options();
  options.insecure = false;
  const absl::Status status = RpcServer::Start(std::move(options)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--listen=127.0.0.1:0"), HasSubstr("say --insecure")));
}

TEST_F(RpcServerTest, InsecureRefusesWhatOthersReach) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:7000"}) {
    const absl::Status status = RpcServer::Validate(Options({"127.0.0.1:0", address}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(absl::StrCat("--listen=", address)),
                                                     HasSubstr("--insecure serves loopback only")));
  }
}

TEST_F(RpcServerTest, EveryBadAddressIsNamedAtOnce) {
  const absl::Status status = RpcServer::Validate(Options({"here", "0.0.0.0:0"}));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("--listen: 'here' is no address"), HasSubstr("--listen=0.0.0.0:0")));
  EXPECT_THAT(std::string(RpcServer::Validate(Options({})).message()),
              HasSubstr("--listen: must name an address"));
}

TEST_F(RpcServerTest, ATakenPortIsNamed) {
  const auto first = Started(Options());
  ASSERT_NE(first, nullptr);
  const std::string address = first->addresses()[0].ToString();
  const absl::Status status = RpcServer::Start(Options({address})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(address));
}

TEST_F(RpcServerTest, ShutdownEndsCallsThatOutlastTheGrace) {
  service_.hold = true;
  const auto server = Started(Options());
  ASSERT_NE(server, nullptr);
  Answer answer;
  std::thread caller([&] {
    answer = Call(server->addresses()[0].ToString(), "/cairn.v1.CacheNode/Describe", "");
  });
  service_.entered.WaitForNotification();
  server->Shutdown(absl::Milliseconds(1));
  server->Shutdown(absl::Milliseconds(1));
  caller.join();
  EXPECT_FALSE(answer.status.ok());
}

}  // namespace
}  // namespace cairn
