// Proofs as gRPC would hand them over, against tables parsed from text: every way to be someone, to
// be no one, and to ask for what is another's. And every method of both services against the rules.
#include "common/security/call_gate.h"

#include <google/protobuf/descriptor.h>

#include <set>

#include "cairn/v1/cache_node.pb.h"
#include "cairn/v1/decode.pb.h"
#include "cairn/v1/router.pb.h"
#include "common/base/hex.h"
#include "common/identity/sha256.h"
#include "common/security/rpc_rules.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kToken[] = "token-of-acme-0123456789";
constexpr char kBearer[] = "Bearer token-of-acme-0123456789";
constexpr char kAccess[] =
    "spiffe://fleet/worker worker acme\n"
    "cn:worker-1 worker acme,globex\n"
    "cn:gateway worker *\n"
    "cn:publisher worker public\n"
    "cn:router router -\n"
    "cn:ops admin -\n"
    "token:acme worker acme\n";

template <typename Table>
std::unique_ptr<WatchedFile<Table>> FileOf(const std::string* text) {
  return *WatchedFile<Table>::Open("file", Table::Parse,
                                   [text](const std::string&) { return *text; });
}

class CallGateTest : public ::testing::Test {
 protected:
  CallGateTest() {
    const Sha256Digest digest = Sha256(kToken);
    tokens_text_ =
        absl::StrCat("acme ", ToHex({reinterpret_cast<const char*>(digest.data()), digest.size()}));
    access_ = FileOf<AccessTable>(&access_text_);
    tokens_ = FileOf<TokenTable>(&tokens_text_);
    gate_ = std::make_unique<CallGate>(access_.get(), tokens_.get());
  }

  static CallProof Named(absl::string_view common_name, absl::string_view tenant = "") {
    CallProof proof;
    proof.common_names = {common_name};
    if (!tenant.empty()) proof.tenant = {tenant};
    return proof;
  }
  static CallProof WithToken(absl::string_view authorization) {
    CallProof proof;
    proof.authorization = {authorization};
    return proof;
  }
  absl::StatusCode CodeOf(const CallProof& proof, absl::string_view method = "CacheNode/Lookup") {
    return gate_->Admit(proof, method).status().code();
  }

  std::string access_text_ = kAccess;
  std::string tokens_text_;
  std::unique_ptr<WatchedFile<AccessTable>> access_;
  std::unique_ptr<WatchedFile<TokenTable>> tokens_;
  std::unique_ptr<CallGate> gate_;
};

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

TEST_F(CallGateTest, ASpiffeIdComesBeforeTheCommonName) {
  CallProof proof = Named("router");
  proof.spiffe_id = "spiffe://fleet/worker";
  const absl::StatusOr<Caller> caller = gate_->Admit(proof, "CacheNode/Lookup");
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->id, "spiffe://fleet/worker");
  EXPECT_EQ(caller->tenant, "acme");
  proof.spiffe_id = "spiffe://fleet/stranger";
  EXPECT_EQ(CodeOf(proof), kDenied) << "the common name does not make up for it";
}

TEST_F(CallGateTest, ATokenCountsAndAnInvalidOneIsNotMadeUpFor) {
  const absl::StatusOr<Caller> caller = gate_->Admit(WithToken(kBearer), "CacheNode/Lookup");
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_EQ(caller->id, "token:acme");
  EXPECT_TRUE(gate_->Admit(WithToken("bearer token-of-acme-0123456789"), "CacheNode/Lookup").ok());
  EXPECT_EQ(CodeOf(WithToken("Bearer token-of-acme-012345678")), kUnauthenticated);
  EXPECT_EQ(CodeOf(WithToken("Basic token-of-acme-0123456789")), kUnauthenticated);
  EXPECT_EQ(CodeOf(WithToken("")), kUnauthenticated);
  CallProof both = Named("worker-1");
  both.authorization = {"Bearer nonsense-nonsense-nonsense"};
  EXPECT_EQ(CodeOf(both), kUnauthenticated);
  both.authorization = {kBearer, kBearer};
  EXPECT_EQ(CodeOf(both), kUnauthenticated);
  const CallGate without(access_.get(), nullptr);
  EXPECT_EQ(without.Admit(WithToken(kBearer), "CacheNode/Lookup").status().code(),
            kUnauthenticated);
}

TEST_F(CallGateTest, NoProofIsNobody) {
  EXPECT_EQ(CodeOf(CallProof()), kUnauthenticated);
  EXPECT_EQ(CodeOf(Named("")), kUnauthenticated);
  CallProof two = Named("worker-1");
  two.common_names.push_back("router");
  EXPECT_EQ(CodeOf(two), kUnauthenticated);
  EXPECT_EQ(CodeOf(Named("stranger")), kDenied);
  EXPECT_EQ(CodeOf(Named("acme")), kDenied) << "a common name is no token's name";
}

TEST_F(CallGateTest, ARevokedTokenAndANewLineCountFromTheNextPoll) {
  tokens_text_ = "# none";
  EXPECT_EQ(CodeOf(WithToken(kBearer)), absl::StatusCode::kOk);
  ASSERT_TRUE(tokens_->Poll().ok());
  EXPECT_EQ(CodeOf(WithToken(kBearer)), kUnauthenticated);
  access_text_ = "cn:stranger worker acme\n";
  ASSERT_TRUE(access_->Poll().ok());
  EXPECT_EQ(CodeOf(Named("stranger")), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(Named("worker-1")), kDenied);
  access_text_ = "cn:stranger";
  EXPECT_FALSE(access_->Poll().ok());
  EXPECT_EQ(CodeOf(Named("stranger")), absl::StatusCode::kOk) << "a bad file changes nothing";
}

TEST_F(CallGateTest, ACallActsForOneOfItsTenants) {
  EXPECT_EQ(gate_->Admit(Named("worker-1", "globex"), "CacheNode/Get")->tenant, "globex");
  EXPECT_EQ(gate_->Admit(Named("gateway", "initech"), "CacheNode/Get")->tenant, "initech");
  EXPECT_EQ(gate_->Admit(Named("worker-1"), "CacheNode/Lookup")->tenant, "")
      << "a lookup's scope says whose";
  const absl::Status which = gate_->Admit(Named("worker-1"), "CacheNode/Get").status();
  EXPECT_EQ(which.code(), kDenied);
  EXPECT_THAT(std::string(which.message()), AllOf(HasSubstr("acme"), HasSubstr("globex")));
  const absl::Status other = gate_->Admit(Named("worker-1", "initech"), "CacheNode/Get").status();
  EXPECT_EQ(other.code(), kDenied);
  EXPECT_THAT(std::string(other.message()), AllOf(HasSubstr("initech"), HasSubstr("globex")));
  EXPECT_EQ(CodeOf(Named("worker-1", "public")), kDenied) << "public is not theirs to act for";
  EXPECT_EQ(gate_->Admit(Named("publisher"), "CacheNode/Get")->tenant, "public");
  CallProof two = Named("worker-1", "acme");
  two.tenant.push_back("globex");
  EXPECT_EQ(CodeOf(two), absl::StatusCode::kInvalidArgument);
}

TEST_F(CallGateTest, ARoleIsNeededForEachMethod) {
  EXPECT_EQ(CodeOf(Named("router"), "CacheNode/WatchBlocks"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(Named("router"), "CacheNode/Lookup"), kDenied);
  EXPECT_EQ(CodeOf(Named("ops"), "CacheNode/RetireNamespace"), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(Named("worker-1", "acme"), "CacheNode/RetireNamespace"), kDenied);
  EXPECT_EQ(CodeOf(Named("ops"), "CacheNode/Get"), kDenied);
  EXPECT_EQ(CodeOf(Named("ops"), "CacheNode/Steal"), absl::StatusCode::kUnimplemented);
}

TEST(RpcRules, EveryMethodOfEachServiceHasExactlyOneRow) {
  // What the proto files define, whether or not code uses it.
  const std::vector<const google::protobuf::FileDescriptor*> files = {
      v1::LookupRequest::descriptor()->file(), v1::AttendRequest::descriptor()->file(),
      v1::RouteRequest::descriptor()->file()};
  std::set<std::string> methods;
  for (const google::protobuf::FileDescriptor* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      const google::protobuf::ServiceDescriptor& service = *file->service(i);
      for (int j = 0; j < service.method_count(); ++j) {
        const std::string method = absl::StrCat(service.name(), "/", service.method(j)->name());
        methods.insert(method);
        const RpcRule* const rule = FindRpcRule(method);
        ASSERT_NE(rule, nullptr) << method << " has no row in rpc_rules.cc";
        EXPECT_FALSE(rule->roles.empty()) << method;
      }
    }
  }
  for (const RpcRule& rule : AllRpcRules()) {
    EXPECT_TRUE(methods.contains(std::string(rule.method))) << rule.method << " is no method";
  }
  EXPECT_EQ(AllRpcRules().size(), methods.size());
}

}  // namespace
}  // namespace cairn::testing
