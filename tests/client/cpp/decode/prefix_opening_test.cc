// A prefix is served or fetched as the cost says, or as the caller does; what is fetched is what
// the nodes hold, of the rank's slices alone.
#include "client/cpp/decode/prefix_opening.h"

#include "tests/client/cpp/decode/session_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PrefixOpeningTest : public SessionTest {
 protected:
  PrefixOpeningTest() {
    first_ = Holder(0, 3);
    second_ = Holder(3, kBlocks);
    bytes_.resize(kBlocks * handle_.block_bytes());
    // Fetching pays from some ten tokens on.
    wish_.cost.round_trip_seconds = 1e-3;
    wish_.cost.link_bytes_per_second = 1e6;
    wish_.cost.local_bytes_free = 1e9;
  }

  absl::StatusOr<PrefixOpening> OpenIt(uint64_t new_tokens, WayChoice choice) {
    MakeSession();
    wish_.cost.new_tokens = new_tokens;
    wish_.choice = choice;
    std::fill(bytes_.begin(), bytes_.end(), uint8_t{0});
    const ContiguousBlocks place(&handle_.payload_map(), absl::MakeSpan(bytes_));
    const std::vector<PartWish> parts = {Wish(0, 3, {NodeOf(first_)}),
                                         Wish(3, kBlocks, {NodeOf(second_)}, 20)};
    return OpenPrefix(session_.get(), kSequence, MakePrompt(), parts, wish_, place);
  }

  void ExpectFetched() {
    EXPECT_THAT(session_->OwnTokens(kSequence, 30), ElementsAre(TokenRange{0, 30}));
    for (uint32_t i = 0; i < kBlocks; ++i) {
      const auto from = bytes_.begin() + static_cast<ptrdiff_t>(i * handle_.block_bytes());
      EXPECT_EQ(std::vector<uint8_t>(from, from + static_cast<ptrdiff_t>(handle_.block_bytes())),
                blocks_[i]);
    }
  }

  FakeHolder* first_;
  FakeHolder* second_;
  std::vector<uint8_t> bytes_;
  OpeningWish wish_;
};

TEST_F(PrefixOpeningTest, FewTokensAreServed) {
  const auto opening = OpenIt(1, WayChoice::kByCost);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->way, DecodeWay::kServe);
  EXPECT_THAT(opening->cost.why, HasSubstr("served: 1 new tokens"));
  EXPECT_EQ(opening->cost.fetch_bytes, kBlocks * handle_.block_bytes());
  EXPECT_THAT(session_->OwnTokens(kSequence, 30), IsEmpty());
  EXPECT_EQ(opening->fetched_bytes, 0);
}

TEST_F(PrefixOpeningTest, ManyAreFetchedAndAreThenTheCallers) {
  const auto opening = OpenIt(1000, WayChoice::kByCost);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->way, DecodeWay::kFetch);
  EXPECT_EQ(opening->fetched_blocks, kBlocks);
  EXPECT_EQ(opening->fetched_bytes, kBlocks * handle_.block_bytes());
  ExpectFetched();
  EXPECT_EQ(first_->decode.opens(), 0);
}

TEST_F(PrefixOpeningTest, TheChoiceCanBeForced) {
  auto opening = OpenIt(1000, WayChoice::kServe);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->way, DecodeWay::kServe);
  EXPECT_EQ(opening->cost.way, DecodeWay::kFetch);
  opening = OpenIt(1, WayChoice::kFetch);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->cost.way, DecodeWay::kServe);
  ExpectFetched();
}

TEST_F(PrefixOpeningTest, AFetchThatFailsIsServedUnlessItWasAskedFor) {
  second_->cache.FailNext("Get", absl::UnavailableError("gone"), 100);
  auto opening = OpenIt(1000, WayChoice::kByCost);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->way, DecodeWay::kServe);
  EXPECT_THAT(opening->fetch_status.message(), HasSubstr("gone"));
  EXPECT_TRUE(absl::IsUnavailable(OpenIt(1000, WayChoice::kFetch).status()));
}

TEST_F(PrefixOpeningTest, ABlockThatAHolderLacksIsFetchedFromTheNextOrSaid) {
  second_ = Holder(3, 5);
  const absl::Status lacking = OpenIt(1, WayChoice::kFetch).status();
  EXPECT_TRUE(absl::IsNotFound(lacking)) << lacking;
  EXPECT_THAT(lacking.message(), HasSubstr("lacks block 5"));
  MakeSession();
  const ContiguousBlocks place(&handle_.payload_map(), absl::MakeSpan(bytes_));
  const std::vector<PartWish> parts = {
      Wish(0, kBlocks, {NodeOf(second_), NodeOf(first_), NodeOf(Holder())})};
  const auto opening = OpenPrefix(session_.get(), kSequence, MakePrompt(), parts, wish_, place);
  ASSERT_TRUE(opening.ok()) << opening.status();
  ExpectFetched();
}

TEST_F(PrefixOpeningTest, ARankFetchesItsSlicesOnly) {
  parameters_.set_first_slice(1);
  parameters_.set_slices(1);
  parameters_.set_query_heads(2);
  const auto opening = OpenIt(1, WayChoice::kFetch);
  ASSERT_TRUE(opening.ok()) << opening.status();
  EXPECT_EQ(opening->fetched_bytes, kBlocks * handle_.block_bytes() / 2);
  EXPECT_EQ(opening->cost.fetch_bytes, static_cast<double>(opening->fetched_bytes));
}

}  // namespace
}  // namespace cairn::testing
