// The tenant `public` of a real node that lists its prefixes: each path is probed by tenants that
// read it and by ones that would write it, and replays of several tenants share one prefix. What is
// hit is counted, so that a dead cache fails as one that tells nobody apart.
#include "absl/strings/str_cat.h"
#include "client/replay/replay_runner.h"
#include "common/base/hex.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/gated_trace.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kAccess[] =
    "spiffe://cairn.test/acme      worker  acme\n"
    "spiffe://cairn.test/globex    worker  globex\n"
    "spiffe://cairn.test/publisher worker  public\n"
    "spiffe://cairn.test/both      worker  acme,public\n"
    "spiffe://cairn.test/router    router  -\n";
constexpr size_t kPublicBlocks = 3;
constexpr size_t kOwnBlocks = 2;
constexpr size_t kBlocks = kPublicBlocks + kOwnBlocks;

class PublicTest : public SecureTest {
 protected:
  PublicTest() {
    WriteAccess(kAccess);
    WriteList({});
    tokens_.resize(kBlocks * SmallBlocks().block_tokens);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i);
  }

  void WriteList(const std::vector<BlockKey>& last_keys) {
    std::string text = "# the prefixes of this test\n";
    for (const BlockKey& key : last_keys) absl::StrAppend(&text, ToHex(key.view()), "\n");
    ReplaceFile(Path("prefixes"), text);
  }
  void StartListing(std::vector<std::string> flags = {}) {
    flags.push_back(absl::StrCat("--public-prefix-file=", Path("prefixes")));
    StartNode(flags);
  }
  CacheNodeClient& Client(const std::string& name) { return **WithCertificate(name).node; }
  NamespaceHandle Space(const std::string& name) { return Register(Client(name), SmallBlocks()); }

  // The first region alone.
  Prompt Shared() {
    const Region region{.scope = {"public", "", ""},
                        .tokens = absl::MakeConstSpan(tokens_).first(PublicTokens()),
                        .external_ids = {}};
    return *Prompt::Make(hasher_, shape_, {&region, 1});
  }
  // The same, and then the tenant's own.
  Prompt Whole(const std::string& tenant) {
    const auto tokens = absl::MakeConstSpan(tokens_);
    const Region regions[] = {
        {.scope = {"public", "", ""}, .tokens = tokens.first(PublicTokens()), .external_ids = {}},
        {.scope = {tenant, "", ""}, .tokens = tokens.subspan(PublicTokens()), .external_ids = {}}};
    return *Prompt::Make(hasher_, shape_, regions);
  }
  void Put(const std::string& name, const Prompt& prompt, size_t first_block = 0) {
    const NamespaceHandle space = Space(name);
    const absl::StatusOr<PutResult> put = Client(name).Put(
        space, prompt, PayloadOf(space, prompt.keys()), {.first_block = first_block});
    ASSERT_TRUE(put.ok()) << put.status();
    ASSERT_TRUE(put->complete());
  }
  // What follows the public region, which it only reads.
  void PutOwn(const std::string& name, const Prompt& prompt) { Put(name, prompt, kPublicBlocks); }
  uint32_t Present(const std::string& name, const Prompt& prompt) {
    const absl::StatusOr<LookupAnswer> answer = Client(name).Lookup(Space(name), {&prompt, 1});
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->prompts[0].blocks_present : 0;
  }
  // Blocks that a lease holds and a get by it delivers.
  uint32_t Leased(const std::string& name, const Prompt& prompt) {
    const NamespaceHandle space = Space(name);
    absl::StatusOr<LookupAnswer> answer =
        Client(name).Lookup(space, {&prompt, 1}, {.lease_readers = 1});
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok() || !answer->lease.has_value()) return 0;
    GetOptions get;
    get.lease = answer->lease->id();
    const CheckedRead read = GetAndCompare(Client(name), space, prompt.keys(), get);
    EXPECT_EQ(read.wrong, 0u);
    return static_cast<uint32_t>(read.result.usable_prefix);
  }
  // That the router would count on at the only replica.
  uint64_t Routed(const std::string& name, const Prompt& prompt) {
    const absl::StatusOr<RouteAnswer> route =
        WithCertificate(name).router->Route(Space(name), prompt);
    EXPECT_TRUE(route.ok()) << route.status();
    return route.ok() ? route->replicas[0].MatchedTokens() / shape_.block_tokens() : 0;
  }
  absl::Status Reserve(const std::string& name, const Prompt& prompt) {
    return Client(name).Reserve(Space(name), prompt, 0, prompt.FirstBlock(1)).status();
  }

  size_t PublicTokens() const { return kPublicBlocks * shape_.block_tokens(); }

  const Sha256BlockHasher hasher_;
  const NamespaceHandle shape_ = *NamespaceHandle::Make("", NamespaceOf(SmallBlocks()));
  std::vector<uint32_t> tokens_;
};

TEST_F(PublicTest, AListedPrefixIsReadByAllOnEveryPathAndWhatFollowsByItsTenant) {
  WriteList({Shared().keys().back()});
  ASSERT_NO_FATAL_FAILURE(StartListing());
  ASSERT_NO_FATAL_FAILURE(StartRouter());
  ASSERT_NO_FATAL_FAILURE(Put("publisher", Shared()));
  const Prompt acme = Whole("acme");
  const Prompt globex = Whole("globex");
  EXPECT_EQ(Present("acme", acme), kPublicBlocks);
  ASSERT_NO_FATAL_FAILURE(PutOwn("acme", acme));
  EXPECT_EQ(Present("acme", acme), kBlocks);
  EXPECT_EQ(Leased("acme", acme), kBlocks);
  EXPECT_TRUE(Await([&] { return Routed("acme", acme) == kBlocks; }));
  // By the same keys, named and not.
  for (const Prompt& prompt : {globex, Prompt::FromKeys(acme.keys())}) {
    EXPECT_EQ(Present("globex", prompt), kPublicBlocks);
    EXPECT_EQ(Leased("globex", prompt), kPublicBlocks);
    EXPECT_EQ(Routed("globex", prompt), kPublicBlocks);
  }
  ASSERT_NO_FATAL_FAILURE(PutOwn("globex", globex));
  EXPECT_EQ(Present("globex", globex), kBlocks);
  EXPECT_EQ(Present("publisher", Prompt::FromKeys(acme.keys())), kPublicBlocks);
}

TEST_F(PublicTest, ItIsWrittenByWhoMayAndOnlyWhatIsListed) {
  WriteList({Shared().keys().back()});
  ASSERT_NO_FATAL_FAILURE(StartListing());
  const absl::Status by_reader = Reserve("acme", Shared());
  EXPECT_TRUE(absl::IsPermissionDenied(by_reader)) << by_reader;
  EXPECT_THAT(std::string(by_reader.message()), HasSubstr("acts for \"acme\" only"));
  EXPECT_EQ(Present("publisher", Shared()), 0u);
  // One that acts for several, where it says for whom.
  CacheNodeClient& both = **WithCertificate("both", "public").node;
  const NamespaceHandle space = Register(both, SmallBlocks());
  EXPECT_TRUE(PutPrompt(both, space, Shared()).ok());
  EXPECT_EQ(Present("globex", Shared()), kPublicBlocks);

  tokens_[0] = 77;
  const absl::Status unlisted = Reserve("publisher", Shared());
  EXPECT_TRUE(absl::IsPermissionDenied(unlisted)) << unlisted;
  EXPECT_THAT(std::string(unlisted.message()), HasSubstr("--public-prefix-file"));
  EXPECT_EQ(Present("globex", Shared()), 0u);
}

TEST_F(PublicTest, WithoutAListNobodyWritesIt) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  const absl::Status refused = Reserve("publisher", Shared());
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("started without one"));
  EXPECT_EQ(Present("acme", Shared()), 0u);
}

TEST_F(PublicTest, WhatTheListLosesIsGoneForAllAlsoWhileTheNodeIsDown) {
  WriteList({Shared().keys().back()});
  ASSERT_NO_FATAL_FAILURE(StartListing({absl::StrCat("--disk-dir=", Path("disk")),
                                        "--disk-bytes=256MiB", "--disk-index-memory=8MiB",
                                        "--spill-block-bytes=1MiB", "--spill-file-age-ms=20"}));
  const Prompt acme = Whole("acme");
  ASSERT_NO_FATAL_FAILURE(Put("publisher", Shared()));
  ASSERT_NO_FATAL_FAILURE(PutOwn("acme", acme));
  ASSERT_TRUE(Await([&] { return Client("acme").Describe()->node().disk().blocks() == kBlocks; }));
  EXPECT_EQ(Present("acme", acme), kBlocks);
  // The restart finds it on disk, and the list without it.
  WriteList({});
  ASSERT_NO_FATAL_FAILURE(RestartNode());
  EXPECT_TRUE(Await([&] { return Present("globex", Shared()) == 0; }));
  EXPECT_EQ(Present("acme", acme), 0u) << "its own blocks are there, and out of reach";
  EXPECT_TRUE(
      Await([&] { return Client("acme").Describe()->node().disk().blocks() <= kOwnBlocks; }));
  // Back on the list and written again, it gives them back.
  WriteList({Shared().keys().back()});
  EXPECT_TRUE(
      Await([&] { return PutPrompt(Client("publisher"), Space("publisher"), Shared()).ok(); }));
  EXPECT_TRUE(Await([&] { return Present("acme", acme) == kBlocks; }));
  EXPECT_EQ(Present("globex", Whole("globex")), kPublicBlocks);
  // And in the memory of a node that runs.
  WriteList({});
  EXPECT_TRUE(Await([&] { return Present("globex", Shared()) == 0; }));
}

// Requests of one prompt each: the same blocks at first, then others in each.
class PublicReplayTest : public PublicTest {
 protected:
  static constexpr size_t kRequests = 40;

  PublicReplayTest() {
    options_.workers = 1;
    options_.block_tokens = 16;
    options_.public_tokens = kPublicBlocks * options_.block_tokens;
    for (uint32_t i = 0; i < kRequests; ++i) {
      std::vector<uint32_t> tokens(kBlocks * options_.block_tokens, 1000 + i);
      std::fill_n(tokens.begin(), options_.public_tokens, 7);
      replay::TraceRequest request;
      request.prompt = replay::TracePrompt::FromTokens(std::move(tokens));
      requests_.push_back(std::move(request));
    }
  }
  BlockKey LastPublicKey() {
    const GatedTrace trace(requests_);
    const NamespaceHandle space = *replay::NamespaceOfReplay(options_, trace);
    const std::vector<uint32_t> tokens(options_.public_tokens, 7);
    const Region region{.scope = {"public", "", ""}, .tokens = tokens, .external_ids = {}};
    return Prompt::Make(hasher_, space, {&region, 1})->keys().back();
  }
  static ClientOptions OptionsOf(const Party& party) {
    ClientOptions options;
    options.credentials = party.security->credentials();
    options.metadata = party.security->metadata();
    return options;
  }
  // As a worker of the tenant; `publisher` acts for the tenant public, or is null.
  replay::ReplayReport Replay(Party& worker, const std::string& tenant, Party* publisher) {
    options_.tenant = tenant;
    NodeClients nodes(OptionsOf(worker), worker.parts->parts());
    std::optional<NodeClients> public_nodes;
    if (publisher != nullptr) {
      public_nodes.emplace(OptionsOf(*publisher), publisher->parts->parts());
    }
    StoppableWait wait;
    replay::ReplayRunner runner(options_,
                                {.router = worker.router.get(),
                                 .node_address = "",
                                 .nodes = &nodes,
                                 .public_nodes = public_nodes ? &*public_nodes : nullptr},
                                &wait, nullptr);
    GatedTrace trace(requests_);
    trace.Allow(kRequests);
    const absl::StatusOr<replay::ReplayReport> report = runner.Run(&trace);
    EXPECT_TRUE(report.ok()) << report.status();
    cache_failure_ = runner.first_cache_failure();
    EXPECT_EQ(report->failed_requests + report->wrong_bytes, 0u) << runner.first_failure();
    EXPECT_EQ(report->shared_requests, kRequests);
    return *report;
  }

  replay::ReplayOptions options_;
  std::vector<replay::TraceRequest> requests_;
  absl::Status cache_failure_;  // Of the last replay.
};

TEST_F(PublicReplayTest, TenantsShareAPrefixOnceItIsPublishedAndNothingElse) {
  WriteList({LastPublicKey()});
  ASSERT_NO_FATAL_FAILURE(StartListing());
  ASSERT_NO_FATAL_FAILURE(StartRouter());
  // Before it is there, who may not write it uses its own scope, from the first block on.
  const replay::ReplayReport before = Replay(WithCertificate("globex"), "globex", nullptr);
  EXPECT_TRUE(cache_failure_.ok()) << cache_failure_;
  EXPECT_EQ(before.own_scope_requests, kRequests);
  EXPECT_EQ(before.hit_blocks_public, 0u);
  EXPECT_EQ(before.hit_blocks, (kRequests - 1) * kPublicBlocks);
  EXPECT_EQ(before.stored_blocks, kPublicBlocks + kRequests * kOwnBlocks);
  // Who may, stores it once; none of globex' blocks, of the same tokens, is a hit.
  const replay::ReplayReport publishing =
      Replay(WithCertificate("both", "acme"), "acme", &WithCertificate("both", "public"));
  EXPECT_EQ(publishing.own_scope_requests, 0u);
  EXPECT_EQ(publishing.hit_blocks, (kRequests - 1) * kPublicBlocks);
  EXPECT_EQ(publishing.hit_blocks_public, publishing.hit_blocks);
  EXPECT_EQ(publishing.stored_blocks, kPublicBlocks + kRequests * kOwnBlocks);
  // Then globex hits it at each request, and nothing of acme's that follows.
  const replay::ReplayReport after = Replay(WithCertificate("globex"), "globex", nullptr);
  EXPECT_TRUE(cache_failure_.ok()) << cache_failure_;
  EXPECT_EQ(after.own_scope_requests, 0u);
  EXPECT_EQ(after.hit_blocks_public, kRequests * kPublicBlocks);
  EXPECT_EQ(after.hit_blocks, after.hit_blocks_public);
  EXPECT_EQ(after.stored_blocks, kRequests * kOwnBlocks);
  // And all of its own.
  EXPECT_EQ(Replay(WithCertificate("globex"), "globex", nullptr).hit_blocks, kRequests * kBlocks);
}

TEST_F(PublicReplayTest, APublisherOfWhatIsNotListedUsesItsOwnScope) {
  ASSERT_NO_FATAL_FAILURE(StartListing());
  ASSERT_NO_FATAL_FAILURE(StartRouter());
  const replay::ReplayReport report =
      Replay(WithCertificate("both", "acme"), "acme", &WithCertificate("both", "public"));
  EXPECT_EQ(report.own_scope_requests, kRequests);
  EXPECT_EQ(report.hit_blocks, (kRequests - 1) * kPublicBlocks);
  EXPECT_TRUE(absl::IsPermissionDenied(cache_failure_)) << cache_failure_;
}

}  // namespace
}  // namespace cairn::testing
