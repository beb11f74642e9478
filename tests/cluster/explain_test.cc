// A fleet that is asked why prompts miss, by cairnctl as a program of its own: a changing value at
// the start of generated prompts, what made room for others, and a namespace that differs.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/replay/generated_trace.h"
#include "common/identity/block_hasher.h"
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

TEST_F(ExplainTest, ARouterThatSeesTokensSaysItByItself) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(1));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  const NamespaceHandle name_space = SmallBlocksNamespace();
  ASSERT_TRUE((*Target().nodes->Get(NodeAddresses()[0]))
                  ->RegisterNamespace(name_space.name(), name_space.fields())
                  .ok());
  replay::GeneratedTraceOptions generated;
  generated.timestamp_tokens = 20;
  const std::unique_ptr<replay::TraceReader> trace = *replay::GeneratedTrace::Make(generated);
  const Sha256BlockHasher hasher;
  const auto says = [this] {
    return router().Log().find("begin with a value that changes: 20 tokens at position 5") !=
           std::string::npos;
  };
  // Nothing is stored, so of each prompt nobody has anything.
  for (uint64_t i = 0; i < generated.requests && !says(); ++i) {
    const std::vector<uint32_t> tokens = (**trace->Next()).prompt.Tokens();
    const Region region = {.scope = {.tenant = "public", .adapter = "", .salt = ""},
                           .tokens = tokens,
                           .external_ids = {}};
    const Prompt prompt = *Prompt::Make(hasher, name_space, {&region, 1});
    const auto answer = router_client().Route(name_space, prompt, {.by_tokens = true});
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_TRUE(router_client().ReportOutcome({.booking = answer->booking}).ok());
  }
  EXPECT_TRUE(says()) << router().Log();
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
