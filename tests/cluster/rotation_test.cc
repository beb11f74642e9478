// A replay runs through node and router while certificates, the CA and tokens are exchanged under
// it; probes say when each exchange has arrived, so that nothing waits for a time. The replay must
// not notice: no request fails, and none misses because a call failed.
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/replay/generated_trace.h"
#include "client/replay/replay_runner.h"
#include "tests/cluster/gated_trace.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

constexpr size_t kRequests = 600;
constexpr char kAllowedToken[] = "the-token-of-who-may-call";
constexpr char kRevokedToken[] = "the-token-that-is-revoked";
constexpr char kAccess[] =
    "spiffe://cairn.test/worker  worker  acme\n"
    "spiffe://cairn.test/router  router  -\n"
    "token:worker                worker  acme\n"
    "token:leaver                worker  acme\n";

class RotationTest : public SecureTest {
 protected:
  RotationTest() : second_("the second CA") {
    WriteAccess(kAccess);
    WriteTokens(
        absl::StrCat(TokenLine("worker", kAllowedToken), TokenLine("leaver", kRevokedToken)));
  }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=64MiB"}));
    ASSERT_NO_FATAL_FAILURE(StartRouter());
  }

  // Replays as this party while `exchange` runs; more requests may go whenever it calls its
  // argument.
  void ReplayDuring(Party& party,
                    absl::FunctionRef<void(absl::FunctionRef<void()> more)> exchange) {
    replay::GeneratedTraceOptions generated;
    generated.requests = kRequests;
    const auto reader = *replay::GeneratedTrace::Make(generated);
    std::vector<replay::TraceRequest> requests;
    for (auto next = *reader->Next(); next.has_value(); next = *reader->Next()) {
      requests.push_back(*std::move(next));
    }
    GatedTrace trace(std::move(requests));
    replay::ReplayOptions options;
    options.tenant = "acme";
    options.workers = 4;
    ClientOptions node_options;
    node_options.credentials = party.security->credentials();
    node_options.metadata = party.security->metadata();
    NodeClients nodes(node_options, party.parts->parts());
    StoppableWait wait;
    replay::ReplayRunner runner(options,
                                {.router = party.router.get(), .node_address = "", .nodes = &nodes},
                                &wait, nullptr);
    absl::StatusOr<replay::ReplayReport> report = absl::UnknownError("did not run");
    std::thread replaying([&] { report = runner.Run(&trace); });
    {
      const absl::Cleanup finish = [&] {
        trace.Allow(kRequests);
        replaying.join();
      };
      size_t allowed = 0;
      exchange([&] { trace.Allow(allowed += kRequests / 8); });
    }
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->requests, kRequests);
    EXPECT_EQ(report->failed_requests, 0u) << runner.first_failure();
    EXPECT_TRUE(runner.first_cache_failure().ok()) << runner.first_cache_failure();
    EXPECT_GT(report->hit_blocks, 0u);
  }

  // Whether a new connection with these files gets through to the node.
  bool Connects(const std::string& name) {
    ClientSecurityConfig config;
    config.tls = FilesOf(name);
    const auto security = ClientSecurity::Open(config, "", nullptr);
    if (!security.ok()) return false;
    SystemClientParts parts;
    ClientOptions options;
    options.target = node().address();
    options.credentials = (*security)->credentials();
    options.retry.attempts_max = 1;
    CacheNodeClient client(options, parts.parts());
    return client.Describe().ok();
  }

  TestAuthority second_;
};

TEST_F(RotationTest, CertificatesAndTheirCaAreExchangedUnderAReplay) {
  Certify("worker", &authority(), authority().certificate());
  Party& worker = WithCertificate("worker");
  ReplayDuring(worker, [&](absl::FunctionRef<void()> more) {
    more();
    // Everybody trusts both, then shows the new one, then trusts only the new one. A client that
    // shows what the node does not trust yet, or trusts what it does not show yet, says when.
    const std::string both = absl::StrCat(authority().certificate(), second_.certificate());
    for (const char* name : {"node", "router", "worker"}) Certify(name, &authority(), both);
    Certify("shows-new", &second_, both);
    WriteAccess(absl::StrCat(kAccess,
                             "spiffe://cairn.test/shows-new   worker acme\n"
                             "spiffe://cairn.test/trusts-new  worker acme\n"
                             "spiffe://cairn.test/shows-old   worker acme\n"));
    EXPECT_TRUE(Await([&] { return Connects("shows-new"); }));
    more();
    Certify("trusts-new", &second_, second_.certificate());
    EXPECT_FALSE(Connects("trusts-new")) << "the node still shows its first certificate";
    for (const char* name : {"node", "router", "worker"}) Certify(name, &second_, both);
    EXPECT_TRUE(Await([&] { return Connects("trusts-new"); }));
    more();
    Certify("shows-old", &authority(), both);
    EXPECT_TRUE(Await([&] { return Connects("shows-old"); }));
    for (const char* name : {"node", "router", "worker"}) {
      Certify(name, &second_, second_.certificate());
    }
    EXPECT_TRUE(Await([&] { return !Connects("shows-old"); }));
    more();
    EXPECT_TRUE(Connects("worker")) << "a new connection of who was exchanged too";
  });
}

TEST_F(RotationTest, ATokenIsRevokedUnderAReplayOfAnother) {
  Party& worker = WithToken("worker", kAllowedToken);
  Party& leaver = WithToken("leaver", kRevokedToken);
  CacheNodeClient& gone = **leaver.node;
  ASSERT_TRUE(gone.Describe().ok());
  const std::unique_ptr<BlockWatcher> feed = gone.WatchBlocks();
  ASSERT_TRUE(feed->Next(absl::Seconds(20)).ok());
  ReplayDuring(worker, [&](absl::FunctionRef<void()> more) {
    more();
    WriteTokens(TokenLine("worker", kAllowedToken));
    EXPECT_TRUE(Await([&] { return absl::IsUnauthenticated(gone.Describe().status()); }));
    more();
    // What it had open ends too.
    absl::Status ended;
    EXPECT_TRUE(Await([&] {
      for (int i = 0; i < 1000 && ended.ok(); ++i) ended = feed->Next(absl::Seconds(1)).status();
      return !ended.ok();
    }));
    EXPECT_TRUE(absl::IsUnauthenticated(ended)) << ended;
    // A file that means nothing changes nothing.
    WriteTokens("half a li");
    WriteAccess("half a li");
    EXPECT_TRUE(Await([&] { return node().Log().find("stays in force") != std::string::npos; }));
    more();
    EXPECT_TRUE((**worker.node).Describe().ok());
    EXPECT_TRUE(absl::IsUnauthenticated(gone.Describe().status()));
    WriteAccess(kAccess);
    WriteTokens(TokenLine("worker", kAllowedToken));
  });
}

}  // namespace
}  // namespace cairn::testing
