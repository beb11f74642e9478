#include "tests/common/rpc/fake_dns.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr uint8_t kTypeA = 1;

// The end of the question that follows the header: a name in labels, type and class. 0: none.
size_t EndOfQuestion(const std::vector<uint8_t>& message) {
  size_t at = kHeaderBytes;
  while (at < message.size() && message[at] != 0) at += message[at] + 1u;
  return at + 5 <= message.size() ? at + 5 : 0;
}

std::vector<uint8_t> Answer(const std::vector<uint8_t>& message, size_t end, uint8_t last_byte) {
  const bool has_address = message[end - 3] == kTypeA;
  std::vector<uint8_t> answer(message.begin(), message.begin() + static_cast<ptrdiff_t>(end));
  answer[2] = 0x84;  // An answer, with authority.
  answer[3] = 0;
  answer[7] = has_address ? 1 : 0;          // Answers.
  answer[9] = answer[10] = answer[11] = 0;  // No other records.
  if (!has_address) return answer;
  for (const int byte : {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, int{last_byte}}) {
    answer.push_back(static_cast<uint8_t>(byte));  // The name again, A, IN, no life, the address.
  }
  return answer;
}

}  // namespace

FakeDns::FakeDns(uint8_t last_byte) : last_byte_(last_byte) {
  socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  CAIRN_CHECK(socket_ >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CAIRN_CHECK(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  CAIRN_CHECK(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

FakeDns::~FakeDns() {
  shutdown(socket_, SHUT_RDWR);  // Wakes the thread.
  thread_.join();
  close(socket_);
}

std::string FakeDns::TargetOf(const std::string& name, int port) const {
  return absl::StrCat("dns://127.0.0.1:", port_, "/", name, ":", port);
}

void FakeDns::Serve() {
  std::vector<uint8_t> message(512);
  while (true) {
    sockaddr_in from{};
    socklen_t size = sizeof(from);
    message.resize(512);
    const ssize_t got = recvfrom(socket_, message.data(), message.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return;
    message.resize(static_cast<size_t>(got));
    const size_t end = message.size() < kHeaderBytes ? 0 : EndOfQuestion(message);
    if (end == 0) continue;
    questions_.fetch_add(1);
    const std::vector<uint8_t> answer = Answer(message, end, last_byte_.load());
    sendto(socket_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from),
           size);
  }
}

}  // namespace cairn::testing
