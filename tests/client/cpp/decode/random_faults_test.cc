// Faults of all kinds between the steps of a session, at random nodes: every answer is what one
// place that holds everything gives, once what was lost was run again.
#include <random>

#include "tests/client/cpp/decode/session_fixture.h"

namespace cairn::testing {
namespace {

class RandomFaultsTest : public SessionTest {};

TEST_F(RandomFaultsTest, TheyNeverChangeAnAnswer) {
  std::vector<FakeHolder*> holders;
  for (int i = 0; i < 3; ++i) holders.push_back(Holder());
  std::mt19937 dice(3);
  const auto roll = [&](uint32_t sides) { return static_cast<uint32_t>(dice() % sides); };
  const auto order = [&] {
    std::vector<DecodeNode> nodes;
    const uint32_t first = roll(3);
    for (uint32_t i = 0; i < 3; ++i) nodes.push_back(NodeOf(holders[(first + i) % 3]));
    return nodes;
  };
  uint64_t lost_ranges = 0;
  for (int story = 0; story < 12; ++story) {
    MakeSession();
    const uint32_t cut = 1 + roll(kBlocks - 1);
    const auto open = [&] { Open({Wish(0, cut, order()), Wish(cut, kBlocks, order(), 60)}); };
    open();
    FakeSequence whole = Whole(60);
    std::vector<Step> steps;
    uint64_t position = kPromptTokens;
    for (int i = 0; i < 12; ++i) {
      steps.push_back(MakeStep(position, 1 + roll(3)));
      position += steps.back().rows;
      FakeDecode& victim = holders[roll(3)]->decode;
      switch (roll(5)) {
        case 0:
          victim.CutStreams(1, static_cast<int>(roll(3)));
          break;
        case 1:
          victim.ForgetSequences();
          break;
        case 2:
          victim.FailItems(static_cast<int>(roll(4)), absl::UnavailableError("busy"), 1);
          break;
        case 3:
          victim.FailItems(1, absl::AbortedError("over"));
          break;
        default:
          break;
      }
      // Steps from here on are to be run, in all layers.
      for (size_t next = steps.size() - 1; next < steps.size();) {
        bool broken = false;
        for (uint32_t layer = 0; layer < sizes_.layers && !broken; ++layer) {
          const Answer answer = Attend(steps[next], layer);
          broken = absl::IsAborted(answer.status);
          if (!broken) ExpectSame(answer, Reference(&whole, steps[next], layer));
        }
        if (!broken) {
          ++next;
          continue;
        }
        for (const LostTokens& lost : session_->TakeLost()) {
          ++lost_ranges;
          while (next > 0 && steps[next].position > lost.tokens.begin) --next;
          if (lost.again) continue;
          // Faults that had gathered at all of them.
          session_->Close(kSequence);
          open();
          next = 0;
          break;
        }
      }
    }
  }
  EXPECT_GT(lost_ranges, 3);
  session_.reset();
  for (FakeHolder* holder : holders) EXPECT_EQ(holder->decode.open_sequences(), 0);
}

}  // namespace
}  // namespace cairn::testing
