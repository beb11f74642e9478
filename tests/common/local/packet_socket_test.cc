// Both ends of a packet socket in one process: what is sent arrives whole or not at all, whoever
// does not read, and whoever ends first.
#include "common/local/packet_socket.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "common/local/local_limits.h"

namespace cairn {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

class PacketSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    near_ = PacketSocket(Descriptor(ends[0]));
    far_ = PacketSocket(Descriptor(ends[1]));
  }
  // Sends until there is no room; answers how many packets went.
  size_t Fill() {
    size_t sent = 0;
    while (near_.Send("packet", {}).ok()) ++sent;
    return sent;
  }
  std::string Next() {
    const auto packet = far_.Receive(absl::MakeSpan(buffer_), 0, kLong);
    return packet.ok() ? std::string(packet->bytes) : packet.status().ToString();
  }

  PacketSocket near_;
  PacketSocket far_;
  std::string buffer_ = std::string(kLocalPacketBytesMax, '\0');
};

TEST_F(PacketSocketTest, AFullSocketIsSaidAtOnceOrWaitedFor) {
  const size_t filled = Fill();
  ASSERT_GT(filled, 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(near_.Send("late", {}, absl::Milliseconds(1))));
  std::thread reader([&] {
    for (size_t i = 0; i < filled; ++i) EXPECT_EQ(Next(), "packet");
  });
  EXPECT_TRUE(near_.Send("late", {}, kLong).ok());
  reader.join();
  EXPECT_EQ(Next(), "late");
}

TEST_F(PacketSocketTest, AWaitForRoomEndsWithTheOtherEnd) {
  Fill();
  std::thread leaver([&] { far_ = PacketSocket(); });
  const absl::Status status = near_.Send("late", {}, kLong);
  leaver.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(PacketSocketTest, TheEndOfTheProcessThatConnectedIsSeen) {
  const std::string name = "@cairn-packet-socket-test-" + std::to_string(getpid());
  const absl::StatusOr<PacketSocket> listener = PacketSocket::Listen(name, 1);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const absl::StatusOr<PacketSocket> client = PacketSocket::Connect(name);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<PacketSocket> server = listener->Accept();
  ASSERT_TRUE(server.ok() && *server);
  const Descriptor watch = server->WatchPeer();
  ASSERT_TRUE(watch);
  pollfd ended{.fd = watch.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&ended, 1, 0), 0) << "it is this process, which goes on";
}

}  // namespace
}  // namespace cairn
