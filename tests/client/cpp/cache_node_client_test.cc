// Small calls before a fake node that fails, loses answers, or answers what breaks the contract.
#include "client/cpp/cache_node_client.h"

#include <gmock/gmock.h>

#include "common/rpc/retry_status.h"
#include "common/wire/limits.h"
#include "tests/client/cpp/client_fixture.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class CacheNodeClientTest : public testing::ClientTest {};

const absl::Status kGone = absl::UnavailableError("gone");

TEST_F(CacheNodeClientTest, RegisterComparesTheNodesFingerprintWithItsOwn) {
  EXPECT_TRUE(client_->RegisterNamespace("sample", handle_->fields()).ok());
  EXPECT_EQ(client_->RegisterNamespace("sample", testing::LargeSegments()).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(CacheNodeClientTest, RegisterOfFieldsThatMeanNothingAsksNobody) {
  Namespace fields = handle_->fields();
  fields.layout.block_tokens = 0;
  EXPECT_EQ(client_->RegisterNamespace("sample", fields).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->Calls("RegisterNamespace"), 0);
}

TEST_F(CacheNodeClientTest, UnreachableNodeIsAskedAgain) {
  node_->FailNext("Describe", kGone, 2);
  EXPECT_TRUE(client_->Describe().ok());
  EXPECT_EQ(node_->Calls("Describe"), 3);
  EXPECT_THAT(wait_.waits(), SizeIs(2));
}

TEST_F(CacheNodeClientTest, OtherFailuresAreNotRepeated) {
  node_->FailNext("Describe", absl::PermissionDeniedError("no"));
  EXPECT_EQ(client_->Describe().status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(node_->Calls("Describe"), 1);
}

TEST_F(CacheNodeClientTest, NodeThatIsGoneIsUnavailableAfterBoundedAttempts) {
  node_->Stop();
  EXPECT_EQ(client_->Describe().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(wait_.waits(), SizeIs(RetryOptions().attempts_max - 1));
}

TEST_F(CacheNodeClientTest, LeasedLookupRepeatsUnderTheSameRequestId) {
  node_->LoseAnswer("Lookup");
  const Prompt prompt = MakePrompt(2);
  absl::StatusOr<LookupAnswer> answer =
      client_->Lookup(*handle_, {&prompt, 1}, {.lease_readers = 1});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<std::string> ids = node_->RequestIds("Lookup");
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_THAT(ids[0], SizeIs(kRequestIdBytes));
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(answer->lease->ttl(), absl::Seconds(1));
}

TEST_F(CacheNodeClientTest, EachLeasedLookupHasItsOwnId) {
  const Prompt prompt = MakePrompt(2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client_->Lookup(*handle_, {&prompt, 1}, {.lease_readers = 1}).ok());
  }
  const std::vector<std::string> ids = node_->RequestIds("Lookup");
  EXPECT_NE(ids[0], ids[1]);
}

TEST_F(CacheNodeClientTest, ProbeHasNoLeaseAndNoRequestId) {
  const Prompt prompt = MakePrompt(2);
  const absl::StatusOr<LookupAnswer> answer = client_->Lookup(*handle_, {&prompt, 1});
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->lease.has_value());
  EXPECT_EQ(answer->prompts[0].blocks_present, 2u);
  EXPECT_EQ(node_->RequestIds("Lookup")[0], "");
  EXPECT_FALSE(node_->lookups()[0].has_lease());
}

TEST_F(CacheNodeClientTest, LookupSendsTokensOrKeysAsAsked) {
  const Prompt prompt = MakePrompt(2);
  ASSERT_TRUE(client_->Lookup(*handle_, {&prompt, 1}).ok());
  ASSERT_TRUE(client_->Lookup(*handle_, {&prompt, 1}, {.by_keys = true}).ok());
  EXPECT_EQ(node_->lookups()[0].prompts(0).regions(0).tokens_size(), 32);
  EXPECT_EQ(node_->lookups()[0].prompts(0).keys(), "");
  EXPECT_EQ(node_->lookups()[1].prompts(0).regions_size(), 0);
  EXPECT_THAT(node_->lookups()[1].prompts(0).keys(), SizeIs(32));
}

TEST_F(CacheNodeClientTest, PromptsWithTooManyTokensAreSentAsKeys) {
  const Prompt prompt = MakePrompt(kTokensPerCallMax / 16 + 1);
  ASSERT_TRUE(client_->Lookup(*handle_, {&prompt, 1}).ok());
  EXPECT_EQ(node_->lookups()[0].prompts(0).regions_size(), 0);
}

TEST_F(CacheNodeClientTest, UnknownNamespaceIsAMissOfEveryBlock) {
  node_->ForgetNamespace();
  const Prompt prompt = MakePrompt(3);
  const absl::StatusOr<LookupAnswer> answer = client_->Lookup(*handle_, {&prompt, 1});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->namespace_known);
  EXPECT_EQ(answer->prompts[0].blocks_total, 3u);
  EXPECT_EQ(answer->prompts[0].blocks_present, 0u);
  ASSERT_THAT(answer->prompts[0].runs, SizeIs(1));
  EXPECT_EQ(answer->prompts[0].runs[0].state, v1::BLOCK_STATE_NAMESPACE_UNKNOWN);
}

TEST_F(CacheNodeClientTest, LookupOptionsOutOfRangeAskNobody) {
  const Prompt prompt = MakePrompt(1);
  const LookupOptions wrong[] = {{.lease_readers = 1025},
                                 {.lease_readers = 2, .reader = 2},
                                 {.wait = absl::Milliseconds(10'001)}};
  for (const LookupOptions& options : wrong) {
    EXPECT_EQ(client_->Lookup(*handle_, {&prompt, 1}, options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(client_->Lookup(*handle_, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(node_->Calls("Lookup"), 0);
}

TEST_F(CacheNodeClientTest, DroppedLeaseEndsWithNothingUsable) {
  const Prompt prompts[] = {MakePrompt(2), MakePrompt(2)};
  { ASSERT_TRUE(client_->Lookup(*handle_, prompts, {.lease_readers = 3, .reader = 2}).ok()); }
  ASSERT_THAT(node_->ended(), SizeIs(1));
  EXPECT_EQ(node_->ended()[0].reader(), 2u);
  EXPECT_THAT(node_->ended()[0].usable_blocks(), ElementsAre(0u, 0u));
}

TEST_F(CacheNodeClientTest, EndedLeaseIsNotEndedAgain) {
  const Prompt prompt = MakePrompt(2);
  {
    absl::StatusOr<LookupAnswer> answer =
        client_->Lookup(*handle_, {&prompt, 1}, {.lease_readers = 1});
    ASSERT_TRUE(answer.ok());
    ReadLease moved = *std::move(answer->lease);
    EXPECT_EQ(*moved.Renew(absl::Seconds(3)), absl::Seconds(3));
    EXPECT_FALSE(moved.End({}).ok()) << "one number a prompt";
    EXPECT_TRUE(*moved.End({2}));
    EXPECT_TRUE(moved.ended());
  }
  ASSERT_THAT(node_->ended(), SizeIs(1));
  EXPECT_THAT(node_->ended()[0].usable_blocks(), ElementsAre(2u));
}

TEST_F(CacheNodeClientTest, LeaseThatIsOverIsNotEndedAgain) {
  {
    ReadLease lease = client_->JoinLease(LeaseId(), 1, 1);
    node_->FailNext("EndLease", absl::AbortedError("over"));
    EXPECT_EQ(lease.End({1}).status().code(), absl::StatusCode::kAborted);
  }
  EXPECT_EQ(node_->Calls("EndLease"), 1);
}

TEST_F(CacheNodeClientTest, ReleasedLeaseIsLeftAlone) {
  { client_->JoinLease(LeaseId(), 1, 1).Release(); }
  EXPECT_EQ(node_->Calls("EndLease"), 0);
}

TEST_F(CacheNodeClientTest, DeleteAnswersForEachKey) {
  const Prompt prompt = MakePrompt(2);
  ASSERT_TRUE(Put(prompt).ok());
  std::vector<BlockKey> keys = {prompt.keys()[1], BlockKey()};
  EXPECT_THAT(*client_->Delete(handle_->fingerprint(), keys), ElementsAre(true, false));
}

TEST_F(CacheNodeClientTest, WatcherReadsTheFeedAndAsksForShards) {
  v1::WatchBlocksResponse hello;
  hello.mutable_hello()->set_node_id("n");
  node_->SetFeed({hello, hello});
  const std::unique_ptr<BlockWatcher> watcher = client_->WatchBlocks();
  for (int i = 0; i < 2; ++i) {
    const auto message = watcher->Next(absl::InfiniteDuration());
    ASSERT_TRUE(message.ok() && message->has_value());
    EXPECT_EQ((*message)->hello().node_id(), "n");
  }
  const auto none = watcher->Next(absl::ZeroDuration());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  watcher->Resync({3, 1, 3});
  EXPECT_THAT(node_->AwaitResync(), ElementsAre(1u, 3u));
}

TEST_F(CacheNodeClientTest, FeedThatBreaksSaysSoAndStaysBroken) {
  node_->FailNext("WatchBlocks", absl::ResourceExhaustedError("too slow"));
  const std::unique_ptr<BlockWatcher> watcher = client_->WatchBlocks();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(watcher->Next(absl::InfiniteDuration()).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(ClientOptionsTest, OutOfRangeIsRefusedByName) {
  const auto refused = [](auto bend) {
    ClientOptions options;
    bend(&options);
    return ValidateClientOptions(options).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(ValidateClientOptions({}).ok());
  EXPECT_TRUE(refused([](ClientOptions* o) { o->target = ""; }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->data_channels = 0; }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->data_channels = 17; }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->control_timeout = absl::ZeroDuration(); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.attempts_max = 0; }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.backoff_max = absl::ZeroDuration(); }));
}

}  // namespace
}  // namespace cairn
