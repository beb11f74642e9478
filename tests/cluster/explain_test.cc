// A fleet that is asked why prompts miss, by cairnctl as a program of its own: a changing value at
// the start of generated prompts, what made room for others, and a namespace that differs.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExplainTest : public ClusterTest {
 protected:
  static ProgramRun Cairnctl(const std::vector<std::string>& arguments) {
    return RunToEnd(absl::StrCat(CAIRN_BIN_DIR, "/cairnctl"), arguments, kSoon);
  }
  ProgramRun Replay(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"replay", "--requests", "60", "--workers", "4", "--block-bytes",
                                 "1024", "--explain", "--router", router().address()});
    return Cairnctl(flags);
  }
};

TEST_F(ExplainTest, ATimestampAtTheStartOfPromptsIsNamedByItsPlaceAndLength) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  const ProgramRun run = Replay({"--timestamp-tokens", "4"});
  EXPECT_EQ(run.exit_status, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("The next request: CHANGING_VALUE: 0 of "),
                                HasSubstr("A value of 4 tokens changes at position 5: ")));
}

TEST_F(ExplainTest, WithoutOneTheSameWorkloadHitsAndTheRestIsNew) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  const ProgramRun run = Replay({});
  EXPECT_EQ(run.exit_status, 0) << run.output;
  EXPECT_THAT(run.output, ::testing::Not(HasSubstr("CHANGING_VALUE")));
}

}  // namespace
}  // namespace cairn::testing
