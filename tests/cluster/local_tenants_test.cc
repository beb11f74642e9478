// Two tenants on one host ask for the same places, over the same node's socket: whose blocks they
// are gets them, the other one finds nothing.
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

constexpr size_t kBlocks = 4;
constexpr char kAccess[] =
    "spiffe://cairn.test/acme     worker  acme\n"
    "spiffe://cairn.test/globex   worker  globex\n";

class LocalTenantsTest : public SecureTest {
 protected:
  LocalTenantsTest() { WriteAccess(kAccess); }

  CacheNodeClient& Acme() { return **WithCertificate("acme").node; }
  CacheNodeClient& Globex() { return **WithCertificate("globex").node; }
};

TEST_F(LocalTenantsTest, WhatIsReadInPlaceIsOnesOwn) {
  ASSERT_NO_FATAL_FAILURE(StartNode());
  const NamespaceHandle acmes = Register(Acme(), SmallBlocks());
  const NamespaceHandle globexes = Register(Globex(), SmallBlocks());
  Region region;
  const std::vector<uint32_t> tokens(kBlocks * acmes.block_tokens(), 7);
  region.tokens = tokens;
  const Prompt prompt = *Acme().MakePrompt(acmes, {&region, 1});
  const auto put = PutPrompt(Acme(), acmes, prompt);
  ASSERT_TRUE(put.ok()) << put.status();
  const auto own = Acme().ReadInPlace(acmes, prompt.keys());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->there_prefix(), kBlocks);
  const auto foreign = Globex().ReadInPlace(globexes, prompt.keys());
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  EXPECT_EQ(foreign->there_prefix(), 0u);
  EXPECT_EQ(foreign->state(0), v1::BLOCK_STATE_NEVER_SEEN);
  // Under a lease of acme's.
  const auto found = Acme().Lookup(acmes, {&prompt, 1}, {.lease_readers = 2});
  ASSERT_TRUE(found.ok() && found->lease.has_value());
  ReadLease joined = Globex().JoinLease(found->lease->id(), 1, 1);
  EXPECT_EQ(Globex().ReadInPlace(globexes, prompt.keys(), &joined).status().code(),
            absl::StatusCode::kAborted);
  joined.Release();
}

}  // namespace
}  // namespace cairn::testing
