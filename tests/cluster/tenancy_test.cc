// Each path is probed twice, by the same calls: the tenant that wrote the blocks hits, and another
// one misses or is refused as for what never was. A cache that is dead, or that tells nobody apart,
// fails half of it.
#include <google/protobuf/descriptor.h>
#include <grpcpp/create_channel.h>

#include "absl/strings/str_cat.h"
#include "cairn/v1/decode.pb.h"
#include "cairn/v1/router.pb.h"
#include "client/cpp/block_mirror.h"
#include "client/cpp/raw_call.h"
#include "common/base/hex.h"
#include "common/base/random_source.h"
#include "common/rpc/channel_options.h"
#include "common/security/rpc_rules.h"
#include "common/wire/message_codec.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBlocks = 4;
constexpr char kAccess[] =
    "spiffe://cairn.test/acme     worker  acme\n"
    "spiffe://cairn.test/globex   worker  globex\n"
    "spiffe://cairn.test/both     worker  acme,globex\n"
    "spiffe://cairn.test/ops      admin   -\n"
    "spiffe://cairn.test/publisher worker public\n"
    "spiffe://cairn.test/router   router  -\n"
    "token:acme-gateway           worker  acme\n";
constexpr char kToken[] = "the-token-of-the-gateway";

class TenancyTest : public SecureTest {
 protected:
  TenancyTest() {
    WriteAccess(kAccess);
    WriteTokens(TokenLine("acme-gateway", kToken));
    tokens_.resize(kBlocks * SmallBlocks().block_tokens);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i);
  }

  CacheNodeClient& Acme() { return **WithCertificate("acme").node; }
  CacheNodeClient& Globex() { return **WithCertificate("globex").node; }

  static NamespaceHandle Space(CacheNodeClient& client) { return Register(client, SmallBlocks()); }
  // The same tokens for everybody, in a scope that does not say whose.
  Prompt PromptOf(CacheNodeClient& client, const NamespaceHandle& space,
                  const std::string& tenant = "") {
    Region region;
    region.scope.tenant = tenant;
    region.tokens = tokens_;
    return *client.MakePrompt(space, {&region, 1});
  }
  void Put(CacheNodeClient& client, const std::string& tenant = "") {
    const NamespaceHandle space = Space(client);
    const absl::StatusOr<PutResult> put = PutPrompt(client, space, PromptOf(client, space, tenant));
    ASSERT_TRUE(put.ok()) << put.status();
    ASSERT_TRUE(put->complete());
  }
  uint32_t Present(CacheNodeClient& client, const Prompt& prompt, LookupOptions options = {}) {
    const absl::StatusOr<LookupAnswer> answer = client.Lookup(Space(client), {&prompt, 1}, options);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->prompts[0].blocks_present : 0;
  }
  uint32_t Present(CacheNodeClient& client) {
    return Present(client, PromptOf(client, Space(client)));
  }
  // Of acme's.
  std::vector<BlockKey> Keys() { return PromptOf(Acme(), Space(Acme())).keys(); }

  std::vector<uint32_t> tokens_;
};

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

TEST_F(TenancyTest, LookupByTokensAndByKeysAndGet) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  EXPECT_EQ(Present(Acme()), kBlocks);
  EXPECT_EQ(Present(Globex()), 0u);
  const Prompt by_keys = Prompt::FromKeys(Keys());
  EXPECT_EQ(Present(Acme(), by_keys), kBlocks);
  EXPECT_EQ(Present(Globex(), by_keys), 0u);
  EXPECT_TRUE(GetAndCompare(Acme(), Space(Acme()), Keys()).result.AllGood());
  const CheckedRead foreign = GetAndCompare(Globex(), Space(Globex()), Keys());
  EXPECT_EQ(foreign.result.usable_prefix, 0u);
  EXPECT_EQ(foreign.result.bytes_verified, 0u);
  EXPECT_EQ(foreign.wrong, 0u);
  // By naming whose they are.
  const NamespaceHandle space = Space(Globex());
  const Prompt named = PromptOf(Globex(), space, "acme");
  const absl::Status refused = Globex().Lookup(space, {&named, 1}).status();
  EXPECT_EQ(refused.code(), kDenied);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("acme"), HasSubstr("globex")));
}

TEST_F(TenancyTest, ATokensAndACertificatesTenantAreOne) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(**WithToken("gateway", kToken).node));
  EXPECT_EQ(Present(Acme()), kBlocks);
  EXPECT_EQ(Present(**WithCertificate("both", "acme").node), kBlocks);
  EXPECT_EQ(Present(**WithCertificate("both", "globex").node), 0u);
  EXPECT_EQ(Present(Globex()), 0u);
  const auto register_as = [](Party& party) {
    return party.node->operator->()->RegisterNamespace("x", NamespaceOf(SmallBlocks())).status();
  };
  EXPECT_EQ(register_as(WithToken("stranger", "a-token-that-nobody-knows")).code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(register_as(WithCertificate("stranger")).code(), kDenied);
  EXPECT_EQ(register_as(WithCertificate("both")).code(), kDenied) << "which of the two?";
  EXPECT_EQ(register_as(WithCertificate("acme", "globex")).code(), kDenied);
}

TEST_F(TenancyTest, ANamespaceIsUnknownToWhoDidNotRegisterIt) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  const NamespaceHandle space = Space(Acme());
  const Prompt mine = PromptOf(Acme(), space);
  EXPECT_TRUE(Acme().Lookup(space, {&mine, 1})->namespace_known);
  const Prompt theirs = PromptOf(Globex(), space, "globex");
  const absl::StatusOr<LookupAnswer> answer = Globex().Lookup(space, {&theirs, 1});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->namespace_known);
  EXPECT_EQ(Globex().Reserve(space, theirs, 0, kBlocks).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Globex().ClearScope(space.fingerprint(), {"", "", ""}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Present(Acme()), kBlocks);
}

TEST_F(TenancyTest, PinsAreThoseOfWhoseBlocksTheyAre) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  const NamespaceHandle space = Space(Globex());
  const auto outcomes_of = [&](CacheNodeClient& client, absl::Duration pin_for) {
    const absl::StatusOr<std::vector<v1::PinOutcome>> outcomes =
        client.PinBlocks(space.fingerprint(), Keys(), pin_for);
    EXPECT_TRUE(outcomes.ok()) << outcomes.status();
    return outcomes.value_or(std::vector<v1::PinOutcome>());
  };
  const auto all = [](v1::PinOutcome outcome) {
    return std::vector<v1::PinOutcome>(kBlocks, outcome);
  };
  EXPECT_EQ(outcomes_of(Globex(), absl::Minutes(1)), all(v1::PIN_OUTCOME_NOT_THERE));
  EXPECT_EQ(outcomes_of(Acme(), absl::Minutes(1)), all(v1::PIN_OUTCOME_PINNED));
  EXPECT_EQ(outcomes_of(Globex(), absl::ZeroDuration()), all(v1::PIN_OUTCOME_NOT_THERE));
  EXPECT_EQ(outcomes_of(Acme(), absl::ZeroDuration()), all(v1::PIN_OUTCOME_RELEASED));
}

TEST_F(TenancyTest, ALeaseOfAnothersIsAsUnknownAsNone) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  const NamespaceHandle space = Space(Acme());
  const Prompt prompt = PromptOf(Acme(), space);
  absl::StatusOr<LookupAnswer> answer = Acme().Lookup(space, {&prompt, 1}, {.lease_readers = 1});
  ASSERT_TRUE(answer.ok() && answer->lease.has_value()) << answer.status();
  SecureRandom random;
  for (const LeaseId& lease : {answer->lease->id(), random.New<LeaseId>()}) {
    ReadLease joined = Globex().JoinLease(lease, 0, 1);
    EXPECT_EQ(Globex().GetLease(lease).status().code(), kAborted);
    EXPECT_EQ(joined.Renew(absl::Seconds(9)).status().code(), kAborted);
    EXPECT_EQ(joined.End({0u}).status().code(), kAborted);
    joined.Release();
    GetOptions get;
    get.lease = lease;
    EXPECT_EQ(GetAndCompare(Globex(), Space(Globex()), Keys(), get).result.usable_prefix, 0u);
  }
  EXPECT_TRUE(Acme().GetLease(answer->lease->id()).ok());
  EXPECT_TRUE(answer->lease->Renew(absl::Seconds(9)).ok());
  GetOptions get;
  get.lease = answer->lease->id();
  EXPECT_TRUE(GetAndCompare(Acme(), space, Keys(), get).result.AllGood());
  EXPECT_TRUE(answer->lease->End({uint32_t{kBlocks}}).ok());
}

TEST_F(TenancyTest, ReservingKeysOfAnothersAndWritingUnderItsToken) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  const NamespaceHandle space = Space(Acme());
  const Prompt prompt = PromptOf(Acme(), space);
  absl::StatusOr<WriteSession> session = Acme().Reserve(space, prompt, 0, kBlocks);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ(session->reserved().size(), kBlocks);
  const PayloadOf payload(space, prompt.keys());
  const std::vector<uint32_t> blocks = {0, 1, 2, 3};

  const NamespaceHandle theirs = Space(Globex());
  WriteSession stolen = Globex().AttachWrite(theirs, session->ticket());
  const absl::StatusOr<WriteResult> written = stolen.Write(blocks, {}, payload);
  EXPECT_TRUE(!written.ok() || !written->errors.empty());
  EXPECT_EQ(stolen.Commit().status().code(), kAborted);
  EXPECT_EQ(stolen.Abort().code(), kAborted);
  stolen.KeepOnDestroy();
  EXPECT_EQ(Present(Globex()), 0u);

  ASSERT_TRUE(session->WriteAll(payload).ok());
  EXPECT_TRUE(session->Commit().ok());
  EXPECT_EQ(Present(Acme()), kBlocks);
  EXPECT_EQ(Present(Globex()), 0u);
  // Known keys: present for who wrote them; for another they are keys of its own scope, or none.
  EXPECT_EQ(Acme().Reserve(space, prompt, 0, kBlocks)->answers()[0].outcome(),
            v1::RESERVE_OUTCOME_PRESENT);
  EXPECT_EQ(Globex().Reserve(theirs, PromptOf(Globex(), theirs), 0, 1)->answers()[0].outcome(),
            v1::RESERVE_OUTCOME_RESERVED);
  EXPECT_EQ(Globex().Reserve(theirs, PromptOf(Globex(), theirs, "acme"), 0, 1).status().code(),
            kDenied);
  EXPECT_EQ(Globex().Reserve(theirs, PromptOf(Globex(), theirs, "public"), 0, 1).status().code(),
            kDenied);
}

TEST_F(TenancyTest, ClearDeleteMismatchAndRetire) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  ASSERT_NO_FATAL_FAILURE(Put(Globex()));
  const Fingerprint fingerprint = Space(Acme()).fingerprint();
  const std::vector<BlockKey> last = {Keys().back()};
  EXPECT_EQ(*Globex().Delete(fingerprint, last), std::vector<bool>{false});
  EXPECT_FALSE(*Globex().ReportMismatch(fingerprint, last[0], {0, 0, 0}));
  EXPECT_EQ(Globex().ClearScope(fingerprint, {"acme", "", ""}).status().code(), kDenied);
  EXPECT_EQ(Present(Acme()), kBlocks);
  EXPECT_EQ(*Acme().Delete(fingerprint, last), std::vector<bool>{true});
  EXPECT_EQ(Present(Acme()), kBlocks - 1);
  EXPECT_EQ(Globex().ClearScope(fingerprint, {"", "", ""})->blocks(), kBlocks);
  EXPECT_EQ(Present(Globex()), 0u);
  EXPECT_EQ(Present(Acme()), kBlocks - 1);
  EXPECT_EQ(Acme().RetireNamespace(fingerprint).status().code(), kDenied);
  EXPECT_TRUE((**WithCertificate("ops").node).RetireNamespace(fingerprint).ok());
}

TEST_F(TenancyTest, DescribeShowsTheCallersOwn) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  const v1::DescribeResponse mine = *Acme().Describe(/*with_shards=*/true);
  EXPECT_EQ(mine.tenant(), "acme");
  EXPECT_EQ(mine.namespaces_size(), 1);
  ASSERT_EQ(mine.tenants_size(), 1);
  EXPECT_EQ(mine.tenants(0).tenant(), "acme");
  EXPECT_EQ(mine.shards_size(), 0) << "sums over all tenants' keys";
  const v1::DescribeResponse theirs = *Globex().Describe(/*with_shards=*/true);
  EXPECT_EQ(theirs.namespaces_size() + theirs.tenants_size() + theirs.shards_size(), 0);
  EXPECT_EQ((**WithCertificate("ops").node).Describe(true)->tenants_size(), 1);
}

// Reads a feed until everything is in; what it then holds.
BlockMirror MirrorOf(CacheNodeClient& client) {
  BlockMirror mirror({});
  const std::unique_ptr<BlockWatcher> watcher = client.WatchBlocks();
  while (!mirror.Exact()) {
    const auto message = watcher->Next(absl::Seconds(20));
    EXPECT_TRUE(message.ok() && message->has_value()) << message.status();
    if (!message.ok() || !message->has_value()) break;
    const absl::Status applied = mirror.Apply(**message, absl::Now());
    EXPECT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(mirror.gaps_seen(), 0u);
  return mirror;
}

TEST_F(TenancyTest, AFeedShowsWhatTheWatcherMaySee) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  const BlockMirror mine = MirrorOf(Acme());
  const BlockMirror theirs = MirrorOf(Globex());
  const BlockMirror all = MirrorOf(**WithCertificate("router").node);
  for (const BlockKey& key : Keys()) {
    EXPECT_NE(mine.TiersOf(key), 0);
    EXPECT_EQ(theirs.TiersOf(key), 0);
    EXPECT_NE(all.TiersOf(key), 0);
  }
  EXPECT_EQ(mine.block_count(), kBlocks);
  EXPECT_EQ(theirs.block_count(), 0u);
}

TEST_F(TenancyTest, SpillAndRestart) {
  ASSERT_NO_FATAL_FAILURE(StartNode({absl::StrCat("--disk-dir=", Path("disk")),
                                     "--disk-bytes=256MiB", "--disk-index-memory=8MiB",
                                     "--spill-block-bytes=1MiB", "--spill-file-age-ms=20"}));
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  ASSERT_TRUE(Await([this] { return Acme().Describe()->node().disk().blocks() == kBlocks; }));
  ASSERT_NO_FATAL_FAILURE(RestartNode());
  ASSERT_TRUE(Await([this] {
    const absl::StatusOr<v1::DescribeResponse> node = Acme().Describe();
    return node.ok() && !node->node().disk().recovering();
  }));
  LookupOptions options;
  options.promote = true;
  options.wait = absl::Seconds(10);
  EXPECT_EQ(Present(Globex(), Prompt::FromKeys(Keys()), options), 0u);
  EXPECT_EQ(Present(Globex()), 0u);
  EXPECT_EQ(Present(Acme(), PromptOf(Acme(), Space(Acme())), options), kBlocks);
  EXPECT_TRUE(GetAndCompare(Acme(), Space(Acme()), Keys()).result.AllGood());
  EXPECT_EQ(GetAndCompare(Globex(), Space(Globex()), Keys()).result.usable_prefix, 0u);
}

TEST_F(TenancyTest, PublicIsReadByAllAndWrittenByWhoListsIt) {
  const NamespaceHandle shape = *NamespaceHandle::Make("", NamespaceOf(SmallBlocks()));
  const Region region{.scope = {"public", "", ""}, .tokens = tokens_, .external_ids = {}};
  const Prompt listed = *Prompt::Make(Sha256BlockHasher(), shape, {&region, 1});
  ReplaceFile(Path("prefixes"), ToHex(listed.keys().back().view()));
  ASSERT_NO_FATAL_FAILURE(StartNode({absl::StrCat("--public-prefix-file=", Path("prefixes"))}));
  CacheNodeClient& publisher = **WithCertificate("publisher").node;
  ASSERT_NO_FATAL_FAILURE(Put(publisher));
  for (CacheNodeClient* reader : {&publisher, &Acme(), &Globex()}) {
    const NamespaceHandle space = Space(*reader);
    const Prompt prompt = PromptOf(*reader, space, "public");
    EXPECT_EQ(Present(*reader, prompt), kBlocks);
    EXPECT_TRUE(GetAndCompare(*reader, space, prompt.keys()).result.AllGood());
    EXPECT_NE(MirrorOf(*reader).TiersOf(prompt.keys()[0]), 0);
  }
  EXPECT_EQ(Present(Acme()), 0u) << "of its own it has none";
  const NamespaceHandle space = Space(Acme());
  EXPECT_EQ(Acme().Reserve(space, PromptOf(Acme(), space, "public"), 0, 1).status().code(),
            kDenied);
  EXPECT_EQ(*Acme().Delete(space.fingerprint(), {PromptOf(Acme(), space, "public").keys()[0]}),
            std::vector<bool>{false});
  EXPECT_EQ(Present(Globex(), PromptOf(Globex(), Space(Globex()), "public")), kBlocks);
}

// How a call with an empty message ends.
absl::StatusCode CodeOf(const std::string& address, const ClientSecurity& security,
                        const std::string& method) {
  grpc::GenericStub stub(
      grpc::CreateCustomChannel(address, security.credentials(), MakeChannelArguments()));
  RawCall call(&stub, method, absl::Seconds(20), security.metadata());
  call.BeginWrite(EncodeMessage(v1::DescribeRequest()), /*last=*/true);
  call.BeginRead();
  while (true) {
    const RawCall::Done done = call.Next();
    if (done.event == RawCall::Event::kWritten) continue;
    if (!done.ok) return call.Finish().code();
    call.BeginRead();
  }
}

TEST_F(TenancyTest, EveryMethodOfAllServicesRefusesWhoMayNotCallIt) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(StartRouter());
  ClientSecurityConfig config;
  config.tls.ca = FilesOf("node").ca;
  const auto nobody = *ClientSecurity::Open(config, "", nullptr);
  const ClientSecurity& stranger = *WithCertificate("stranger").security;
  size_t methods = 0;
  for (const auto& [file, address] :
       {std::pair{v1::LookupRequest::descriptor()->file(), node().address()},
        std::pair{v1::AttendRequest::descriptor()->file(), node().address()},
        std::pair{v1::RouteRequest::descriptor()->file(), router().address()}}) {
    const google::protobuf::ServiceDescriptor& service = *file->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      const std::string method =
          absl::StrCat("/", service.full_name(), "/", service.method(i)->name());
      EXPECT_EQ(CodeOf(address, *nobody, method), absl::StatusCode::kUnauthenticated) << method;
      EXPECT_EQ(CodeOf(address, stranger, method), kDenied) << method;
      ++methods;
    }
  }
  EXPECT_EQ(methods, AllRpcRules().size());
}

TEST_F(TenancyTest, RouteLookupPrefixAndOutcome) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  ASSERT_NO_FATAL_FAILURE(StartRouter());
  ASSERT_NO_FATAL_FAILURE(Put(Acme()));
  RouterClient& acme = *WithCertificate("acme").router;
  RouterClient& globex = *WithCertificate("globex").router;
  const NamespaceHandle space = Space(Acme());
  const NamespaceHandle theirs = Space(Globex());
  const Prompt prompt = PromptOf(Acme(), space);
  const uint64_t tokens = tokens_.size();
  ASSERT_TRUE(Await([&] {
    const absl::StatusOr<PrefixAnswer> prefix = acme.LookupPrefix(space, prompt);
    return prefix.ok() && prefix->holders.size() == 1 && prefix->holders[0].blocks == kBlocks;
  }));
  EXPECT_TRUE(globex.LookupPrefix(theirs, PromptOf(Globex(), theirs))->holders.empty());
  EXPECT_TRUE(globex.LookupPrefix(theirs, Prompt::FromKeys(Keys()))->holders.empty());
  const absl::StatusOr<RouteAnswer> mine = acme.Route(space, prompt, {.by_tokens = true});
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->replicas[0].MatchedTokens(), tokens);
  const absl::StatusOr<RouteAnswer> other = globex.Route(theirs, Prompt::FromKeys(Keys()));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->replicas[0].MatchedTokens() + other->replicas[0].coming_tokens, 0u);

  RouteOutcome outcome;
  outcome.booking = mine->booking;
  EXPECT_FALSE(*globex.ReportOutcome(outcome)) << "another's booking";
  EXPECT_TRUE(*acme.ReportOutcome(outcome));
  EXPECT_FALSE(*acme.ReportOutcome(outcome)) << "it is over";
  EXPECT_EQ(WithCertificate("ops").router->Route(space, prompt).status().code(), kDenied);
  EXPECT_TRUE(WithCertificate("ops").router->ListReplicas().ok());
}

}  // namespace
}  // namespace cairn::testing
