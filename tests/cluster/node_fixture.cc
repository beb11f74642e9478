#include "tests/cluster/node_fixture.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace cairn::testing {
namespace {

// Between two questions to the node.
constexpr absl::Duration kAskInterval = absl::Milliseconds(10);

}  // namespace

NodeTest::NodeTest() : folder_(MakeTempFolder()) {}

NodeTest::~NodeTest() {
  if (HasFailure()) {
    if (node_ != nullptr) std::cerr << "log of the node:\n" << node_->Log();
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::cerr << "log of " << file.path().filename() << ":\n"
                << std::ifstream(file.path()).rdbuf() << "\n";
    }
  }
  std::filesystem::remove_all(folder_);
}

void NodeTest::StartNode(std::vector<std::string> flags) {
  absl::StatusOr<std::unique_ptr<ServerProcess>> node = testing::StartNode(
      {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), .flags = std::move(flags)});
  ASSERT_TRUE(node.ok()) << node.status();
  node_ = *std::move(node);
  asker_ = NewClient();
}

std::unique_ptr<TestClient> NodeTest::NewClient() const {
  return std::make_unique<TestClient>(node_->address());
}

std::unique_ptr<ChildProcess> NodeTest::StartActor(const std::string& role,
                                                   const std::vector<std::string>& flags) {
  ChildProcess::Options options;
  options.command = {absl::StrCat(CAIRN_BIN_DIR, "/cairn_cluster_actor"),
                     absl::StrCat("--role=", role), absl::StrCat("--node=", node_->address())};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  options.log_path = absl::StrCat(folder_, "/", role, ++actors_);
  options.talk = true;
  absl::StatusOr<std::unique_ptr<ChildProcess>> actor = ChildProcess::Start(std::move(options));
  EXPECT_TRUE(actor.ok()) << actor.status();
  return *std::move(actor);
}

v1::DescribeResponse NodeTest::Describe(bool shards) {
  const absl::StatusOr<v1::DescribeResponse> answer = (*asker_)->Describe(shards);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : v1::DescribeResponse();
}

bool NodeTest::AwaitDescribe(absl::FunctionRef<bool(const v1::DescribeResponse&)> condition,
                             absl::Duration bound) {
  const absl::Time deadline = absl::Now() + bound;
  while (true) {
    const v1::DescribeResponse answer = Describe();
    if (condition(answer)) return true;
    if (absl::Now() >= deadline) {
      std::cerr << "the node still says:\n"
                << answer.load().DebugString() << "pins: " << answer.pins()
                << ", blocks: " << answer.blocks() << "\n";
      return false;
    }
    if (node_->process().WaitExit(kAskInterval)) return false;
  }
}

std::string Expect(ChildProcess& process, const std::string& start) {
  const absl::StatusOr<std::string> line = process.ReadLine(kSoon);
  EXPECT_TRUE(line.ok()) << "instead of '" << start << "': " << line.status();
  if (!line.ok()) return "";
  absl::string_view rest = *line;
  EXPECT_TRUE(absl::ConsumePrefix(&rest, start)) << "'" << *line << "' instead of " << start;
  return std::string(absl::StripLeadingAsciiWhitespace(rest));
}

std::string GoOn(ChildProcess& process, const std::string& start) {
  const absl::Status status = process.WriteLine("go");
  EXPECT_TRUE(status.ok()) << status;
  return Expect(process, start);
}

bool IsIdle(const v1::DescribeResponse& node) {
  const v1::LoadReport& load = node.load();
  uint64_t held = node.pins() + load.host_pinned_bytes() + load.host_reserved_bytes() +
                  load.in_flight_bytes() + load.writers_waiting() + load.leases();
  for (const v1::TenantInfo& tenant : node.tenants()) {
    held += tenant.leased_bytes() + tenant.reserved_bytes();
  }
  return held == 0;
}

}  // namespace cairn::testing
