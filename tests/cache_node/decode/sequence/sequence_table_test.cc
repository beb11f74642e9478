// Sequences from their opening to their end: what they hold, what is refused, and that all comes
// back. Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class SequenceTableTest : public ::testing::Test {
 protected:
  SequenceTableTest() {
    prompt_ = w_.store.Prompt("t", 1, 3);
    CAIRN_CHECK(w_.store.Put(prompt_) == 3);
  }
  ~SequenceTableTest() override {
    w_.table->CloseAll();
    const absl::Status quiet = w_.Quiet();
    EXPECT_TRUE(quiet.ok()) << quiet;
  }

  SequenceWorld w_;
  TestPrompt prompt_;
};

TEST_F(SequenceTableTest, ItBeginsBehindThePromptAndHoldsWhatIsAppended) {
  const auto opened = w_.TryOpen(prompt_, {.reserve_tokens = 8});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->first_token, 0u);
  EXPECT_EQ(opened->covered_tokens, 12u);
  EXPECT_EQ(opened->reserved_tokens, 8u);
  EXPECT_EQ(opened->idle, absl::Minutes(1));
  EXPECT_TRUE(w_.Append(opened->id, 12, {5, 6, 7, 8, 9}).ok());
  EXPECT_TRUE(w_.Holds(opened->id, 12, {5, 6, 7, 8, 9}));
  const auto sequence = w_.table->Find("t", opened->id);
  ASSERT_TRUE(sequence.ok());
  const SlotRun run = (*sequence)->Stored(0, 1, 1);
  EXPECT_EQ(run.tokens, 17u);
  ASSERT_EQ(run.slots.size(), 5u);
  const BlockPin pin = w_.store.Pin("t", prompt_.keys[1]);
  EXPECT_EQ(static_cast<const void*>(run.slots[1]), pin.bytes().data());
}

}  // namespace
}  // namespace cairn::node
