#include "tests/cache_node/local/local_node_fixture.h"

#include <filesystem>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/server/wake_event.h"

namespace cairn::node {
namespace {

constexpr absl::Duration kSoon = absl::Seconds(30);
constexpr absl::Duration kAskInterval = absl::Milliseconds(5);

bool Await(const std::function<bool()>& condition) {
  const WakeEvent never;
  const absl::Time deadline = absl::Now() + kSoon;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    never.WaitFor(kAskInterval);
  }
  return true;
}

}  // namespace

NodeConfig LocalNodeTest::SmallConfig() {
  NodeConfig config;
  config.listen = {"127.0.0.1:0"};
  config.metrics_listen = "";
  config.node_id = "local";
  config.security.insecure = true;
  config.host_memory = ByteSize::MiB(16);
  config.memory_limit = ByteSize::GiB(2);
  config.local.return_within = absl::Milliseconds(200);
  return config;
}

void LocalNodeTest::StartNode(const NodeConfig& config) {
  node_ = nullptr;
  absl::StatusOr<std::unique_ptr<Node>> node = Node::Start(config);
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
  network_ = NewClient(/*use_local=*/false);
  name_space_ =
      std::make_unique<NamespaceHandle>(testing::Register(**network_, testing::SmallBlocks()));
}

std::unique_ptr<testing::TestClient> LocalNodeTest::NewClient(bool use_local) const {
  return std::make_unique<testing::TestClient>(node_->addresses()[0], nullptr, use_local);
}

void LocalNodeTest::Put(const testing::NumberedPrompt& prompt) {
  const auto put = testing::PutPrompt(**network_, *name_space_, prompt.prompt());
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_EQ(put->blocks_written, prompt.keys().size());
}

std::unique_ptr<testing::NumberedPrompt> LocalNodeTest::Prompt(uint32_t number, size_t blocks) {
  return std::make_unique<testing::NumberedPrompt>(**network_, *name_space_, number, blocks);
}

double LocalNodeTest::Metric(const std::string& series) const {
  for (const absl::string_view line : absl::StrSplit(node_->metrics().Text(), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double value = 0;
    if (words.size() == 2 && words[0] == series && absl::SimpleAtod(words[1], &value)) return value;
  }
  ADD_FAILURE() << "no metric " << series;
  return -1;
}

bool LocalNodeTest::Becomes(const std::string& series, double value) const {
  return Await([&] { return Metric(series) == value; });
}

bool LocalNodeTest::AwaitNoPins() const {
  return Await([&] {
    const StoreStatus status = node_->store().Status();
    return status.pins == 0 && status.leases == 0;
  });
}

size_t LocalNodeTest::Descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

}  // namespace cairn::node
