// The node as a process: how it refuses to start, drains, ends, and stands still.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/server/program.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/mirror_reader.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StartStopTest : public NodeTest {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--host-memory=16MiB", "--memory-limit=1GiB"});
    ASSERT_NO_FATAL_FAILURE(StartNode(std::move(flags)));
    client_ = NewClient();
    name_space_ = std::make_unique<NamespaceHandle>(Register(**client_, SmallBlocks()));
    prompt_ = std::make_unique<NumberedPrompt>(**client_, *name_space_, 1, 4);
  }

  ReadLease PutAndLease(absl::Duration ttl) {
    const auto put = PutPrompt(**client_, *name_space_, prompt_->prompt());
    EXPECT_TRUE(put.ok() && put->complete()) << put.status();
    LookupOptions options;
    options.lease_readers = 1;
    options.lease_ttl = ttl;
    auto answer = (*client_)->Lookup(*name_space_, prompt_->span(), options);
    EXPECT_TRUE(answer.ok() && answer->lease) << answer.status();
    return *std::move(answer->lease);
  }

  // A node with these flags beside sound ones.
  static ProgramRun RunWith(const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"--listen=127.0.0.1:0", "--insecure", "--node-id=test",
                                    "--metrics-listen=", "--host-memory=16MiB"};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"), all, kSoon);
  }

  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<NumberedPrompt> prompt_;
};

TEST_F(StartStopTest, SigtermWithAFeedOpenEndsItWithStatusZero) {
  ASSERT_NO_FATAL_FAILURE(Start({"--drain-grace-ms=500"}));
  MirrorReader mirror(**client_);
  ASSERT_TRUE(mirror.AwaitExact(kSoon)) << mirror.status();
  EXPECT_EQ(node().Terminate(kSoon), kExitOk);
}

TEST_F(StartStopTest, SigtermWithAWriterInTheMiddleEndsItWithStatusZero) {
  ASSERT_NO_FATAL_FAILURE(Start({"--drain-grace-ms=500"}));
  const auto writer = StartActor("writer", {"--prompt=2", "--blocks=4"});
  Expect(*writer, "reserved");
  GoOn(*writer, "half");
  EXPECT_EQ(node().Terminate(kSoon), kExitOk);
}

TEST_F(StartStopTest, ADrainingNodeServesItsLeasesRefusesNewWritersAndEndsWithTheLastLease) {
  ASSERT_NO_FATAL_FAILURE(Start({"--drain-grace-ms=60000"}));
  ReadLease lease = PutAndLease(absl::Seconds(60));
  MirrorReader mirror(**client_);
  ASSERT_TRUE(mirror.AwaitExact(kSoon)) << mirror.status();
  ASSERT_EQ(node().Terminate(absl::ZeroDuration()), std::nullopt);
  ASSERT_TRUE(mirror.AwaitDraining(kSoon)) << mirror.status();

  GetOptions options;
  options.lease = lease.id();
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys(), options);
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
  const NumberedPrompt other(**client_, *name_space_, 2, 1);
  EXPECT_EQ((*client_)->Reserve(*name_space_, other.prompt(), 0, 1).status().code(),
            absl::StatusCode::kUnavailable);
  const uint32_t usable = 4;
  EXPECT_TRUE(lease.End({&usable, 1}).ok());
  EXPECT_EQ(node().process().WaitExit(kSoon), kExitOk);
}

TEST_F(StartStopTest, AKilledNodeIsUnavailable) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  node().Kill9();
  EXPECT_EQ((*client_)->Describe().status().code(), absl::StatusCode::kUnavailable);
}

// Stopped for far longer than the lease lives, the node gives the reader time when it goes on.
TEST_F(StartStopTest, ANodeThatStoodStillDoesNotExpireLeasesForIt) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  ReadLease lease = PutAndLease(absl::Milliseconds(1500));
  node().Stop();
  LookupOptions lookup;
  lookup.timeout = absl::Seconds(3);
  EXPECT_EQ((*client_)->Lookup(*name_space_, prompt_->span(), lookup).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  node().Continue();
  GetOptions options;
  options.lease = lease.id();
  const CheckedRead read = GetAndCompare(**client_, *name_space_, prompt_->keys(), options);
  EXPECT_TRUE(read.result.AllGood()) << read.result.status;
  EXPECT_EQ(read.wrong, 0u);
  EXPECT_TRUE(AwaitDescribe(IsIdle)) << "the lease never expires";
}

TEST_F(StartStopTest, APortThatIsTakenIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  const ProgramRun run = RunWith({absl::StrCat("--listen=", node().address())});
  EXPECT_EQ(run.exit_status, kExitFailure);
  EXPECT_THAT(run.output, HasSubstr(node().address()));
}

TEST_F(StartStopTest, AnUnknownFlagIsNamedWithTheNearestOne) {
  const ProgramRun run = RunWith({"--host-memry=1GiB"});
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, AllOf(HasSubstr("memry"), HasSubstr("did you mean")));
}

TEST_F(StartStopTest, AValueOutOfRangeIsNamedWithItsRange) {
  const ProgramRun run = RunWith({"--feed-shards=257"});
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, AllOf(HasSubstr("feed-shards"), HasSubstr("257"), HasSubstr("256")));
}

TEST_F(StartStopTest, AValueThatIsNoNumberIsNamed) {
  const ProgramRun run = RunWith({"--host-memory=lots"});
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, AllOf(HasSubstr("host"), HasSubstr("lots")));
}

TEST_F(StartStopTest, WithoutCredentialsItMustBeToldToBeInsecure) {
  const ProgramRun run = RunWith({"--insecure=false"});
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, HasSubstr("insecure"));
}

TEST_F(StartStopTest, InsecureServesLoopbackOnly) {
  const ProgramRun run = RunWith({"--listen=0.0.0.0:0"});
  EXPECT_EQ(run.exit_status, kExitUsage);
  EXPECT_THAT(run.output, AllOf(HasSubstr("0.0.0.0"), HasSubstr("loopback")));
}

TEST_F(StartStopTest, ASumOverTheMemoryLimitIsShown) {
  const ProgramRun run = RunWith({"--host-memory=2GiB", "--memory-limit=1GiB"});
  EXPECT_NE(run.exit_status, kExitOk);
  EXPECT_NE(run.exit_status, std::nullopt);
  EXPECT_THAT(run.output, AllOf(HasSubstr("memory-limit"), HasSubstr("host-memory")));
}

}  // namespace
}  // namespace cairn::testing
