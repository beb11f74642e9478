#include "tests/cluster/feed_fixture.h"

#include <grpcpp/create_channel.h>

#include <iostream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/block_mirror.h"
#include "common/rpc/channel_options.h"
#include "tests/cluster/checked_payload.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kBlocks = 64;  // Of a prompt.
// A pool of 1 MiB holds 16,384 blocks of 64 bytes, less than half of all.
constexpr uint32_t kPrompts = 600;
constexpr uint32_t kScopes = 5;

std::string SaltOf(uint32_t number) { return absl::StrCat("scope", number % kScopes); }

// A connection that takes no more than 64 KiB of what is not read: otherwise gRPC itself would read
// megabytes ahead.
std::unique_ptr<v1::CacheNode::Stub> ConnectWithSmallWindow(const std::string& address) {
  grpc::ChannelArguments arguments = MakeChannelArguments();
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return v1::CacheNode::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace

void FeedTest::Start(std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--host-memory=1MiB", "--memory-limit=1GiB"});
  ASSERT_NO_FATAL_FAILURE(StartNode(std::move(flags)));
  client_ = NewClient();
  name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, TinyBlocks()));
}

void FeedTest::Churn(uint64_t seed, int steps) {
  const auto client = NewClient();
  std::mt19937_64 random(seed);
  for (int i = 0; i < steps; ++i) {
    const auto number = static_cast<uint32_t>(random() % kPrompts);
    const NumberedPrompt prompt(**client, *name_space_, number, kBlocks, SaltOf(number));
    const uint64_t choice = random() % 100;
    absl::Status status;
    if (choice < 90) {
      status = PutPrompt(**client, *name_space_, prompt.prompt(), true).status();
      // Its scope was cleared, or its blocks deleted, under its token.
      if (status.code() == absl::StatusCode::kAborted) status = absl::OkStatus();
    } else if (choice < 99) {
      status = (*client)->Delete(name_space_->fingerprint(), prompt.keys()).status();
    } else {
      status = (*client)->ClearScope(name_space_->fingerprint(), ScopeOf(SaltOf(number))).status();
    }
    ASSERT_TRUE(status.ok()) << "seed " << seed << ", step " << i << ": " << status;
  }
}

void FeedTest::ExpectAgreement(MirrorReader& mirror, const std::string& which) {
  EXPECT_TRUE(mirror.AwaitAgreement(**client_, kSoon)) << which << ": " << mirror.status();
  EXPECT_TRUE(mirror.AwaitExact(kSoon)) << which << ": " << mirror.status();
  EXPECT_EQ(mirror.gaps_seen(), 0u) << which;
  EXPECT_EQ(mirror.digest_mismatches_seen(), 0u) << which;
  std::cout << which << ": " << mirror.messages() << " messages, " << mirror.block_count()
            << " blocks at the end\n";
}

StuckWatcher::StuckWatcher(const std::string& address)
    : stub_(ConnectWithSmallWindow(address)), watcher_(stub_.get()) {
  BlockMirror mirror(MirrorOptions{});
  const absl::Time deadline = absl::Now() + kSoon;
  while (!mirror.Exact() && absl::Now() < deadline) {
    const auto message = watcher_.Next(absl::Milliseconds(100));
    EXPECT_TRUE(message.ok()) << message.status();
    if (!message.ok()) break;
    if (*message) {
      EXPECT_TRUE(mirror.Apply(**message, absl::Now()).ok());
    }
  }
  EXPECT_TRUE(mirror.Exact());
}

absl::Status StuckWatcher::Read() { return watcher_.Next(kSoon).status(); }

absl::Status StuckWatcher::End() {
  const absl::Time deadline = absl::Now() + kSoon;
  while (absl::Now() < deadline) {
    const auto message = watcher_.Next(absl::Seconds(1));
    if (!message.ok()) return message.status();
  }
  return absl::OkStatus();
}

}  // namespace cairn::testing
