// FakeDns: a DNS server on loopback that gives every name one IPv4 address, which a test changes.
//
// Fake: answers questions for A with the address and all others with none. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace cairn::testing {

class FakeDns {
 public:
  // `address` is 127.0.0.`last_byte`.
  explicit FakeDns(uint8_t last_byte);
  ~FakeDns();

  void MoveTo(uint8_t last_byte) { last_byte_.store(last_byte); }
  // What gRPC looks up at this server.
  std::string TargetOf(const std::string& name, int port) const;
  uint64_t questions() const { return questions_.load(); }

 private:
  void Serve();

  std::atomic<uint8_t> last_byte_;
  std::atomic<uint64_t> questions_{0};
  int socket_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace cairn::testing
