// LeasePins: pins on a leased prompt's blocks, by their place in it. Stories on a small store with
// a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

constexpr uint64_t kBlockBytes = 1024;  // 64 in the pool.

class LeasePinsTest : public ::testing::Test {
 protected:
  LeasePinsTest() {
    t_.Register(TestStore::Shape(kBlockBytes));
    prompt_ = t_.Prompt("t", 1, 4);
    CAIRN_CHECK(t_.Put(prompt_) == 4);
  }

  TestStore t_;
  TestPrompt prompt_;
};

TEST_F(LeasePinsTest, BlocksOfALeaseArePinnedByTheirPlaceInAPrompt) {
  const TestPrompt branch = t_.Branch(prompt_, 2, 5, 3);
  ASSERT_EQ(t_.Put(branch), 3u);
  LookupQuery query;
  query.prompts = {{.keys = prompt_.keys}, {.keys = branch.keys}};
  query.lease = LeaseWish{};
  const LeaseId lease = *t_.store->Lookup("t", t_.fingerprint(), query).lease;
  const auto pins_of = [&](uint32_t prompt, uint32_t first, uint32_t count) {
    auto pins = t_.store->LeasePins("t", t_.fingerprint(), lease, prompt, first, count);
    CAIRN_CHECK_OK(pins.status());
    return *std::move(pins);
  };
  std::vector<BlockPin> pins = pins_of(1, 1, 100);
  ASSERT_EQ(pins.size(), 4u);
  for (size_t i = 0; i < pins.size(); ++i) EXPECT_TRUE(t_.Intact(pins[i], branch.keys[1 + i]));
  EXPECT_TRUE(t_.Intact(pins_of(0, 3, 1)[0], prompt_.keys[3]));
  EXPECT_EQ(pins_of(0, 1, 2).size(), 2u);
  EXPECT_TRUE(pins_of(0, 4, 1).empty());
  EXPECT_TRUE(pins_of(0, UINT32_MAX, UINT32_MAX).empty());
  EXPECT_TRUE(pins_of(0, 0, 0).empty());
  // They outlive the lease.
  t_.AdvancePastEverything();
  for (size_t i = 0; i < pins.size(); ++i) EXPECT_TRUE(t_.Intact(pins[i], branch.keys[1 + i]));
  pins.clear();
  EXPECT_TRUE(t_.Quiet().ok()) << t_.Quiet();
}

TEST_F(LeasePinsTest, ALeaseThatIsResumedKeepsItsBlocksInTheirPlaces) {
  LookupQuery query;
  query.prompts = {{.keys = prompt_.keys}};
  query.lease = LeaseWish{};
  query.hold_pending = true;
  query.resume = t_.store->Lookup("t", t_.fingerprint(), query).lease;
  ASSERT_TRUE(query.resume.has_value());
  EXPECT_EQ(t_.store->Lookup("t", t_.fingerprint(), query).lease, query.resume);
  const auto pins = t_.store->LeasePins("t", t_.fingerprint(), *query.resume, 0, 1, 100);
  ASSERT_TRUE(pins.ok()) << pins.status();
  ASSERT_EQ(pins->size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(t_.Intact((*pins)[i], prompt_.keys[1 + i]));
}

TEST_F(LeasePinsTest, PinsOfALeaseAreRefusedToOthersAndAfterItsEnd) {
  const LeaseId lease = *t_.Lease(prompt_).lease;
  const auto code_of = [&](const std::string& tenant, const Fingerprint& fingerprint,
                           uint32_t prompt) {
    return t_.store->LeasePins(tenant, fingerprint, lease, prompt, 0, 1).status().code();
  };
  EXPECT_EQ(code_of("t", t_.fingerprint(), 0), absl::StatusCode::kOk);
  EXPECT_EQ(code_of("t", t_.fingerprint(), 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of("u", t_.fingerprint(), 0), absl::StatusCode::kAborted);
  EXPECT_EQ(code_of("t", Fingerprint{}, 0), absl::StatusCode::kAborted);
  // A deleted block revokes the lease.
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[2]}).ok());
  EXPECT_EQ(code_of("t", t_.fingerprint(), 0), absl::StatusCode::kAborted);
  EXPECT_EQ(t_.store->Status().pins, 0u);
}

TEST_F(LeasePinsTest, RevocationsMoveBeforeAPinStopsBeingReadableUnseen) {
  BlockPin pin = t_.Pin("t", prompt_.keys[3]);
  const uint64_t before = t_.counters.revocations;
  // What nobody holds, and what only makes room, is not told.
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {t_.Prompt("t", 9, 1).keys[0]}).ok());
  for (uint32_t i = 0; i < 10; ++i) t_.Put(t_.Prompt("t", 100 + i, 30));
  EXPECT_EQ(t_.counters.revocations, before);
  EXPECT_TRUE(pin.readable());
  ASSERT_TRUE(t_.store->Delete("t", t_.fingerprint(), {prompt_.keys[3]}).ok());
  EXPECT_EQ(t_.counters.revocations, before + 1);
  EXPECT_FALSE(pin.readable());
}

TEST_F(LeasePinsTest, AClearAndAPurgeMoveRevocationsWhateverIsHeld) {
  const uint64_t before = t_.counters.revocations;
  ASSERT_TRUE(t_.store->ClearScope("t", t_.fingerprint(), t_.Plan(prompt_).scope_digest).ok());
  EXPECT_EQ(t_.counters.revocations, before + 1);
  ASSERT_TRUE(t_.store->PurgeWriter(5, 0, 1).ok());
  EXPECT_EQ(t_.counters.revocations, before + 2);
}

TEST_F(LeasePinsTest, ARetirementMovesRevocationsAndTheEpoch) {
  const std::optional<uint64_t> epoch = t_.store->LiveEpoch(t_.fingerprint());
  ASSERT_TRUE(epoch.has_value());
  const uint64_t before = t_.counters.revocations;
  ASSERT_TRUE(t_.store->RetireNamespace(t_.fingerprint()).ok());
  EXPECT_GT(t_.counters.revocations, before);
  EXPECT_FALSE(t_.store->LiveEpoch(t_.fingerprint()).has_value());
  t_.Register(TestStore::Shape(kBlockBytes));
  EXPECT_NE(t_.store->LiveEpoch(t_.fingerprint()), epoch);
  EXPECT_FALSE(t_.store->LiveEpoch(Fingerprint{}).has_value());
}

TEST(LeasePinsBoundsTest, PinsOfALongLeaseAreTakenInSteps) {
  constexpr size_t kBlocks = 700;
  TestStoreOptions options;
  options.pool_bytes = 4096 * 64;
  options.store.leased_bytes_max = options.pool_bytes;
  options.store.reserved_bytes_max = options.pool_bytes;
  TestStore t(std::move(options));
  t.Register(TestStore::Shape(64));
  const TestPrompt prompt = t.Prompt("t", 1, kBlocks);
  ASSERT_EQ(t.Put(prompt), kBlocks);
  const LeaseId lease = *t.Lease(prompt).lease;
  const auto pins = t.store->LeasePins("t", t.fingerprint(), lease, 0, 3, UINT32_MAX);
  ASSERT_TRUE(pins.ok()) << pins.status();
  ASSERT_EQ(pins->size(), kBlocks - 3);
  for (size_t i = 0; i < pins->size(); i += 17) {
    EXPECT_TRUE(t.Intact((*pins)[i], prompt.keys[3 + i])) << i;
  }
}

}  // namespace
}  // namespace cairn::node
