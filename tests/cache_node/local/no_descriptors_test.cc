// The node's local socket while its process has no descriptor to spare. Not under the sanitizers,
// which look at memory through descriptors of their own.
#include <sys/resource.h>

#include <optional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/cache_node/local/local_server_fixture.h"

namespace cairn::node {
namespace {

using NoDescriptorsTest = LocalServerTest;

// All descriptors of this process but those it has.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 1024;
    setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = dup(0); fd >= 0; fd = dup(0)) taken_.emplace_back(fd);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  void LeaveOne() { taken_.pop_back(); }

 private:
  rlimit before_{};
  std::vector<Descriptor> taken_;
};

TEST_F(NoDescriptorsTest, TheNodeWaitsAndDoesNotSpin) {
  const v1::OpenLocalResponse opened = Open();
  std::optional<RawClient> client;
  {
    NoDescriptors none;
    none.LeaveOne();
    client.emplace(opened.socket());
    const absl::Time begun = absl::Now();
    // Waiting for time to pass would take a descriptor.
    const absl::Time late = begun + absl::Seconds(30);
    while (Metric("cairn_local_accepts_failed_total") < 5 && absl::Now() < late) {
      std::this_thread::yield();
    }
    EXPECT_GE(Metric("cairn_local_accepts_failed_total"), 5);
    const double ticks = absl::FDivDuration(absl::Now() - begun, absl::Milliseconds(1));
    EXPECT_LE(Metric("cairn_local_accepts_failed_total"), 5 + ticks);
  }
  EXPECT_TRUE(client->Hello(opened.ticket())) << "let in when there are some again";
}

}  // namespace
}  // namespace cairn::node
