// A tenant that floods a real node with long prompts, and others that ask for the same few prompts
// again and again beside it: with and without something kept for them.
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/secure_fixture.h"

namespace cairn::testing {
namespace {

constexpr char kAccess[] =
    "spiffe://cairn.test/alone   worker  alone\n"
    "spiffe://cairn.test/kept    worker  kept\n"
    "spiffe://cairn.test/unkept  worker  unkept\n"
    "spiffe://cairn.test/loud    worker  loud\n";
constexpr uint32_t kPrompts = 16;
constexpr size_t kPromptBlocks = 8;
constexpr int kRequests = 150;
constexpr size_t kFloodBlocks = 64;
// Of the flood, between two requests: the pool of 16 MiB in every four.
constexpr int kFloodPrompts = 1;

class TenantFloodTest : public SecureTest {
 protected:
  TenantFloodTest() { WriteAccess(kAccess); }

  // Share of the blocks of `kRequests` requests that were there; what is missing is written. Some
  // prompts are asked for more often than others.
  double HitRate(const std::string& tenant, bool flooded) {
    CacheNodeClient& client = **WithCertificate(tenant).node;
    const NamespaceHandle space = Register(client, SmallBlocks());
    std::mt19937 random(7);
    std::geometric_distribution<uint32_t> popular(0.15);
    uint64_t hits = 0;
    for (int i = 0; i < kRequests; ++i) {
      std::vector<uint32_t> tokens;
      const Prompt prompt =
          MakePrompt(client, space, popular(random) % kPrompts, kPromptBlocks, &tokens);
      const absl::StatusOr<LookupAnswer> answer =
          client.Lookup(space, {&prompt, 1}, {.touch = true});
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (answer.ok()) hits += answer->prompts[0].blocks_present;
      const absl::StatusOr<PutResult> put = PutPrompt(client, space, prompt);
      EXPECT_TRUE(put.ok()) << put.status();
      for (int flood = 0; flooded && flood < kFloodPrompts; ++flood) Flood();
    }
    return static_cast<double>(hits) / (kRequests * kPromptBlocks);
  }

 private:
  // Of the caller's only tenant. Borrows the tokens.
  static Prompt MakePrompt(CacheNodeClient& client, const NamespaceHandle& space, uint32_t number,
                           size_t blocks, std::vector<uint32_t>* tokens) {
    tokens->assign(blocks * space.block_tokens(), number);
    Region region;
    region.tokens = *tokens;
    return *client.MakePrompt(space, {&region, 1});
  }

  void Flood() {
    CacheNodeClient& client = **WithCertificate("loud").node;
    const NamespaceHandle space = Register(client, SmallBlocks());
    std::vector<uint32_t> tokens;
    const Prompt prompt = MakePrompt(client, space, ++flooded_, kFloodBlocks, &tokens);
    const absl::StatusOr<PutResult> put = PutPrompt(client, space, prompt);
    EXPECT_TRUE(put.ok()) << put.status();
  }

  uint32_t flooded_ = 0;
};

TEST_F(TenantFloodTest, AFloodDoesNotPushATenantBelowWhatIsKeptForIt) {
  ReplaceFile(Path("quotas"), "kept host-kept=10MiB\nloud host=12MiB\n");
  ASSERT_NO_FATAL_FAILURE(StartNode({absl::StrCat("--quota-file=", Path("quotas"))}));
  const double alone = HitRate("alone", false);
  const double kept = HitRate("kept", true);
  const double unkept = HitRate("unkept", true);
  std::cout << "hit rates: alone " << alone << ", kept " << kept << ", unkept " << unkept << "\n";
  EXPECT_GT(alone, 0.5);
  EXPECT_NEAR(kept, alone, 0.02);
  EXPECT_LT(unkept, alone - 0.1);
}

}  // namespace
}  // namespace cairn::testing
