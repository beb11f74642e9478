// Each format from a few lines written by the test, plain and gzipped; then lines that break one
// rule each, whose status must name the place and the value.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/replay/open_trace.h"
#include "tests/client/replay/trace_file.h"

namespace cairn::replay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMooncake[] =
    R"({"timestamp": 2000, "input_length": 1200, "output_length": 5, "hash_ids": [0, 1, 9]})"
    "\n"
    R"({"timestamp": 3500, "input_length": 0, "output_length": 6, "hash_ids": []})"
    "\n"
    R"({"timestamp": 5000.5, "input_length": 512, "output_length": 7, "hash_ids": [0], "x": 1})"
    "\n";
constexpr char kAgentTokens[] = R"({"s":"a","t":1000000,"o":3,"ref":-1,"keep":0,"add":[1,2,3,4]})"
                                "\n"
                                R"({"s":"a","t":1500000,"o":4,"ref":0,"keep":3,"add":[5,6]})"
                                "\n"
                                R"({"s":"a","t":1500000,"o":0,"ref":1,"keep":0,"add":[]})"
                                "\n"
                                R"({"s":"a","t":2000000,"o":5,"ref":1,"keep":4,"add":[7]})"
                                "\n"
                                R"({"s":"a","t":2500000,"o":6,"ref":3,"keep":2,"add":[]})"
                                "\n";
constexpr char kNormalised[] = "7.5 200 9 3 1-2,8\n8.000 192 0 4 1-2,3\n9.000 63 1 3\n";

struct Outcome {
  std::vector<TraceRequest> requests;
  uint64_t empty_requests = 0;
  uint32_t block_tokens = 0;
  absl::Status status;
};

Outcome Load(absl::string_view text, const TraceOptions& options = {},
             TraceFile::Form form = TraceFile::Form::kPlain) {
  const TraceFile file(text, form);
  Outcome outcome;
  auto trace = OpenTrace(file.path(), options);
  outcome.status = trace.status();
  if (!trace.ok()) return outcome;
  auto requests = ReadAll(trace->get());
  outcome.status = requests.status();
  if (requests.ok()) outcome.requests = *std::move(requests);
  outcome.empty_requests = (*trace)->empty_requests();
  outcome.block_tokens = (*trace)->block_tokens();
  return outcome;
}

std::vector<IdRun> RunsOf(const TraceRequest& request) {
  return {request.prompt.runs().begin(), request.prompt.runs().end()};
}

TEST(MooncakeTrace, GivesIdsAsRunsAndSecondsFromTheFirstRequest) {
  for (const auto form : {TraceFile::Form::kPlain, TraceFile::Form::kGzipped}) {
    const Outcome trace = Load(kMooncake, {}, form);
    ASSERT_TRUE(trace.status.ok()) << trace.status;
    EXPECT_EQ(trace.block_tokens, 512u);
    EXPECT_EQ(trace.empty_requests, 1u);
    ASSERT_EQ(trace.requests.size(), 2u);
    EXPECT_EQ(trace.requests[0].arrival_s, 0);
    EXPECT_EQ(trace.requests[0].input_tokens(), 1200u);
    EXPECT_EQ(trace.requests[0].output_tokens, 5u);
    EXPECT_EQ(trace.requests[0].name_space(), 0u);
    EXPECT_THAT(RunsOf(trace.requests[0]), ElementsAre(IdRun{0, 2}, IdRun{9, 1}));
    EXPECT_DOUBLE_EQ(trace.requests[1].arrival_s, 3.0005);
    EXPECT_EQ(trace.requests[1].prompt.Tokens().size(), 512u);
  }
}

TEST(AgentTokensTrace, BuildsPromptsOnEarlierOnes) {
  for (const auto form : {TraceFile::Form::kPlain, TraceFile::Form::kGzipped}) {
    const Outcome trace = Load(kAgentTokens, {}, form);
    ASSERT_TRUE(trace.status.ok()) << trace.status;
    EXPECT_EQ(trace.block_tokens, 0u);
    EXPECT_EQ(trace.empty_requests, 1u);
    ASSERT_EQ(trace.requests.size(), 4u);
    EXPECT_THAT(trace.requests[0].prompt.Tokens(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(trace.requests[1].prompt.Tokens(), ElementsAre(1, 2, 3, 5, 6));
    EXPECT_THAT(trace.requests[2].prompt.Tokens(), ElementsAre(1, 2, 3, 5, 7));
    EXPECT_THAT(trace.requests[3].prompt.Tokens(), ElementsAre(1, 2));
    EXPECT_EQ(trace.requests[3].output_tokens, 6u);
    EXPECT_DOUBLE_EQ(trace.requests[3].arrival_s, 1.5);
  }
}

TEST(NormalisedTrace, KeepsRangesAndNamespaces) {
  for (const auto form : {TraceFile::Form::kPlain, TraceFile::Form::kGzipped}) {
    const Outcome trace = Load(kNormalised, {}, form);
    ASSERT_TRUE(trace.status.ok()) << trace.status;
    EXPECT_EQ(trace.block_tokens, 64u);
    ASSERT_EQ(trace.requests.size(), 3u);
    EXPECT_EQ(trace.requests[0].name_space(), 3u);
    EXPECT_EQ(trace.requests[1].name_space(), 4u);
    EXPECT_THAT(RunsOf(trace.requests[1]), ElementsAre(IdRun{1, 3}));
    EXPECT_DOUBLE_EQ(trace.requests[1].arrival_s, 0.5);
    EXPECT_EQ(trace.requests[1].input_tokens(), 192u);
  }
}

TEST(NormalisedTrace, APartialBlockWithoutAnIdIsLikeNoOther) {
  const Outcome trace = Load("0 200 9 3 1-2,8\n0 200 9 3 1-2,8\n");
  ASSERT_TRUE(trace.status.ok()) << trace.status;
  const std::vector<uint32_t> first = trace.requests[0].prompt.Tokens();
  const std::vector<uint32_t> second = trace.requests[1].prompt.Tokens();
  ASSERT_EQ(first.size(), 200u);
  ASSERT_EQ(second.size(), 200u);
  const auto differ = std::mismatch(first.begin(), first.end(), second.begin());
  EXPECT_EQ(differ.first - first.begin(), 192);
}

TEST(NormalisedTrace, APartialBlockMayHaveAnId) {
  const Outcome trace = Load("0 200 9 3 1-4\n");
  ASSERT_TRUE(trace.status.ok()) << trace.status;
  EXPECT_THAT(RunsOf(trace.requests[0]), ElementsAre(IdRun{1, 4}));
}

TEST(OpenTrace, TakesAnotherBlockSize) {
  const Outcome trace = Load("0.0 48 9 3 1-3\n", {.block_tokens = 16});
  ASSERT_TRUE(trace.status.ok()) << trace.status;
  EXPECT_EQ(trace.block_tokens, 16u);
  EXPECT_EQ(Load(kAgentTokens, {.block_tokens = 16}).status.code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(OpenTrace, SaysWhatItKnowsWhenTheContentIsNeither) {
  for (const char* text :
       {"{\"id\":\"trace_0001\",\"requests\":[]}\n", "hello\n", "[1]\n", "{\n"}) {
    const Outcome trace = Load(text);
    EXPECT_EQ(trace.status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(trace.status.message()),
                AllOf(HasSubstr(":1: "), HasSubstr("hash_ids")));
  }
}

TEST(OpenTrace, AnEmptyFileIsRefused) {
  EXPECT_EQ(Load("\n\n").status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(TraceReader, ABadLineEndsTheTraceForGood) {
  const TraceFile file(absl::StrCat(kMooncake, "{\n", kMooncake));
  auto trace = OpenTrace(file.path());
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE((*trace)->Next().ok());
  EXPECT_TRUE((*trace)->Next().ok());
  const absl::Status status = (*trace)->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), absl::StrCat(file.path(), ":4: not JSON"));
  EXPECT_EQ((*trace)->Next().status(), status);
}

// A second line and what the status must say of it.
using BadLines = std::vector<std::pair<std::string, std::string>>;

void ExpectRefused(const std::string& good, const BadLines& bad) {
  for (const auto& [line, reason] : bad) {
    const Outcome trace = Load(absl::StrCat(good, line, "\n"));
    EXPECT_EQ(trace.status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(trace.status.message()), AllOf(HasSubstr(":2: "), HasSubstr(reason)))
        << line;
    EXPECT_THAT(trace.requests, IsEmpty());
  }
}

std::string Mooncake(absl::string_view timestamp, absl::string_view input, absl::string_view output,
                     absl::string_view ids) {
  return absl::StrCat("{\"timestamp\":", timestamp, ",\"input_length\":", input,
                      ",\"output_length\":", output, ",\"hash_ids\":", ids, "}");
}

TEST(MooncakeTrace, RefusesWhatIsMalformed) {
  ExpectRefused(Mooncake("0", "512", "1", "[1]") + "\n",
                {{"[]", "not a JSON object"},
                 {"{\"timestamp\":1}", "no field \"input_length\""},
                 {Mooncake("\"x\"", "512", "1", "[1]"), "\"timestamp\" is \"x\", not a number"},
                 {Mooncake("0", "-1", "1", "[1]"), "\"input_length\" is -1"},
                 {Mooncake("0", "1.5", "1", "[1]"), "\"input_length\" is 1.5"},
                 {Mooncake("0", "512", "1e3", "[1]"), "\"output_length\" is 1000.0"},
                 {Mooncake("0", "5000000", "1", "[1]"), "a prompt of 5000000 tokens"},
                 {Mooncake("0", "513", "1", "[1]"), "\"hash_ids\" has 1 ids"},
                 {Mooncake("0", "511", "1", "[1,2]"), "\"hash_ids\" has 2 ids"},
                 {Mooncake("0", "512", "1", "7"), "\"hash_ids\" is 7, not a list"},
                 {Mooncake("0", "512", "1", "[-7]"), "\"hash_ids[0]\" is -7"},
                 {Mooncake("0", "512", "1", "[18446744073709551615]"), "\"hash_ids[0]\" is 1844"},
                 {Mooncake("0", "512", "1", "[1e30]"), "\"hash_ids[0]\" is 1e+30"}});
}

TEST(AgentTokensTrace, RefusesWhatIsMalformed) {
  const auto line = [](absl::string_view ref, absl::string_view keep, absl::string_view add) {
    return absl::StrCat("{\"t\":1,\"o\":1,\"ref\":", ref, ",\"keep\":", keep, ",\"add\":", add,
                        "}");
  };
  ExpectRefused(line("-1", "0", "[1,2]") + "\n",
                {{line("1", "0", "[1]"), "\"ref\" is 1, not a whole number from -1 to 0"},
                 {line("-2", "0", "[1]"), "\"ref\" is -2"},
                 {line("18446744073709551615", "0", "[1]"), "\"ref\" is 18446744073709551615"},
                 {line("0", "3", "[1]"), "\"keep\" is 3, not a whole number from 0 to 2"},
                 {line("-1", "1", "[1]"), "\"keep\" is 1, not a whole number from 0 to 0"},
                 {line("0", "1", "[4294967296]"), "\"add[0]\" is 4294967296"},
                 {line("0", "1", "{}"), "\"add\" is an object"},
                 {"{\"t\":1,\"o\":1,\"ref\":0,\"keep\":0}", "no field \"add\""},
                 {"{\"o\":1,\"ref\":0,\"keep\":0,\"add\":[1]}", "no field \"t\""}});
}

TEST(NormalisedTrace, RefusesWhatIsMalformed) {
  ExpectRefused("0.000 128 1 0 1-2\n",
                {{"0.0 128 1", "3 fields"},
                 {"0.0 128 1 0 1-2 x", "6 fields"},
                 {"x 128 1 0 1-2", "seconds is \"x\""},
                 {"inf 128 1 0 1-2", "seconds is \"inf\""},
                 {"0.0 -128 1 0 1-2", "input is \"-128\""},
                 {"0.0 128 y 0 1-2", "output is \"y\""},
                 {"0.0 128 1 z 1-2", "namespace is \"z\""},
                 {"0.0 5000000 1 0 1-2", "a prompt of 5000000 tokens"},
                 {"0.0 128 1 0 1", "1 ids; 128 tokens have 2 full blocks of 64"},
                 {"0.0 128 1 0 1-3", "more than the 2 ids"},
                 {"0.0 128 1 0 1-9223372036854775807", "more than the 2 ids"},
                 {"0.0 128 1 0 1,9223372036854775808", "an id is over"},
                 {"0.0 128 1 0 2-1", "the range 2-1 ends before it starts"},
                 {"0.0 128 1 0 1-", "an id is \"\""},
                 {"0.0 128 1 0 1,,2", "an id is \"\""}});
}

}  // namespace
}  // namespace cairn::replay
