// LocalServerTest: the node's local socket before clients that speak packets themselves, and so can
// break its rules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/local/local_limits.h"
#include "common/local/packet_socket.h"
#include "common/rpc/id_conversion.h"
#include "tests/cache_node/local/local_node_fixture.h"

namespace cairn::node {

// A client that says what it is told to.
class RawClient {
 public:
  explicit RawClient(absl::string_view socket) {
    absl::StatusOr<PacketSocket> connected = PacketSocket::Connect(socket);
    EXPECT_TRUE(connected.ok()) << connected.status();
    if (connected.ok()) socket_ = *std::move(connected);
  }

  void Send(absl::string_view packet) { (void)socket_.Send(packet, {}); }
  void Send(const v1::LocalRequest& request) { Send(request.SerializeAsString()); }
  // What comes next; nothing when the connection is over.
  std::optional<v1::LocalAnswer> Next() {
    constexpr absl::Duration kAnswerWithin = absl::Seconds(30);
    absl::StatusOr<PacketSocket::Packet> packet =
        socket_.Receive(absl::MakeSpan(buffer_), kLocalDescriptorsPerPacketMax, kAnswerWithin);
    if (!packet.ok()) {
      EXPECT_TRUE(absl::IsUnavailable(packet.status())) << packet.status();
      return std::nullopt;
    }
    v1::LocalAnswer answer;
    EXPECT_TRUE(
        answer.ParseFromArray(packet->bytes.data(), static_cast<int>(packet->bytes.size())));
    descriptors = std::move(packet->descriptors);
    return answer;
  }
  std::optional<v1::LocalAnswer> Ask(const v1::LocalRequest& request) {
    Send(request);
    return Next();
  }
  bool Hello(const std::string& ticket, const std::string& previous = "") {
    v1::LocalRequest request;
    request.mutable_hello()->set_ticket(ticket);
    request.mutable_hello()->set_previous_connection(previous);
    const std::optional<v1::LocalAnswer> answer = Ask(request);
    if (answer.has_value()) connection = answer->welcome().connection();
    return answer.has_value() && answer->has_welcome();
  }
  int fd() const { return socket_.fd(); }

  std::vector<Descriptor> descriptors;  // Of the last answer.
  std::string connection;

 private:
  PacketSocket socket_;
  std::string buffer_ = std::string(kLocalPacketBytesMax, '\0');
};

class LocalServerTest : public LocalNodeTest {
 protected:
  void SetUp() override {
    StartNode();
    if (HasFatalFailure()) return;
    prompt_ = Prompt(1, 2);
    Put(*prompt_);
  }

  v1::OpenLocalResponse Open() {
    grpc::ClientContext context;
    v1::OpenLocalResponse response;
    auto stub = v1::CacheNode::NewStub(
        grpc::CreateChannel(node_->addresses()[0], grpc::InsecureChannelCredentials()));
    const grpc::Status status = stub->OpenLocal(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // One that said hello.
  std::unique_ptr<RawClient> Connect(const std::string& previous = "") {
    const v1::OpenLocalResponse opened = Open();
    auto client = std::make_unique<RawClient>(opened.socket());
    EXPECT_TRUE(client->Hello(opened.ticket(), previous));
    return client;
  }
  v1::LocalRequest ReadRequest() const {
    v1::LocalRequest request;
    v1::LocalRead* read = request.mutable_read();
    read->set_fingerprint(std::string(name_space_->fingerprint().view()));
    read->set_keys(KeysToProto(prompt_->keys()));
    return request;
  }

  std::unique_ptr<testing::NumberedPrompt> prompt_;
};

}  // namespace cairn::node
