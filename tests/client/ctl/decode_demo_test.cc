// cairnctl decode-demo as a person uses it, through the function that main calls, against fake
// nodes that compute with the real kernels: what it prints, and when it says that something is
// wrong.
#include <gmock/gmock.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/replay/model/model_shape.h"
#include "client/replay/served/cold_prefill.h"
#include "tests/client/cpp/decode/fake_holder.h"

namespace cairn::ctl {
namespace {

using testing::FakeHolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;

  Json json() const { return Json::parse(out); }
};

Ran RunDemo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "decode-demo");
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

class DecodeDemoTest : public ::testing::Test {
 protected:
  DecodeDemoTest() : handle_(MakeHandle()), node_(handle_, parts_.parts()) {}

  static NamespaceHandle MakeHandle() {
    const replay::ModelShape shape;
    return replay::ModelNamespace(
               shape, 1, replay::ModelLayout(shape, Dtype::kFloat32, ScaleKind::kNone, 16, 1))
        .value();
  }

  Ran Demo(const std::string& nodes, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--node",       nodes, "--prompt-tokens", "70",
                                          "--new-tokens", "20",  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunDemo(arguments);
  }

  SystemClientParts parts_;
  const NamespaceHandle handle_;
  FakeHolder node_;
};

TEST_F(DecodeDemoTest, ItsTokensAreThoseOfAWorkerAloneAndItSaysWhatWasMoved) {
  const Ran ran = Demo(node_.cache.target());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = ran.json();
  EXPECT_EQ(json["tokens_equal"], true);
  EXPECT_THAT(json["tokens"], SizeIs(20));
  EXPECT_EQ(json["held_as"], "sequences");
  EXPECT_EQ(json["blocks"], 4);
  EXPECT_EQ(json["blocks_put"], 4);
  EXPECT_EQ(json["fetch_bytes"], 4 * handle_.block_bytes());
  EXPECT_EQ(json["moved_bytes"], json["bytes_sent"].get<int>() + json["bytes_received"].get<int>());
  EXPECT_GT(json["bytes_received"], 21 * 4 * (512 + 32));  // A row for each layer of each step.
  EXPECT_EQ(json["recomputed_tokens"], 0);
  EXPECT_EQ(json["round_trips"], 21 * 4);
  EXPECT_THAT(ran.err, HasSubstr("worker 1 computed a prompt of 70 tokens by itself"));
  EXPECT_THAT(ran.err, HasSubstr("worker 1 put its 4 blocks on"));
  EXPECT_THAT(ran.err, HasSubstr("worker 2: 16 of 20 tokens, "));
  EXPECT_THAT(ran.err, HasSubstr("worker 2: 20 of 20 tokens, "));
  EXPECT_EQ(node_.decode.open_sequences(), 0);
}

TEST_F(DecodeDemoTest, ASecondRunFindsTheBlocksAndTextSaysTheSame) {
  ASSERT_EQ(Demo(node_.cache.target()).code, 0);
  const Ran ran =
      RunDemo({"--node", node_.cache.target(), "--prompt-tokens", "70", "--new-tokens", "3"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("blocks_put: 0\n"));
  EXPECT_THAT(ran.out, HasSubstr("tokens_equal: true\n"));
  EXPECT_THAT(ran.err, HasSubstr("4 blocks were there"));
}

TEST_F(DecodeDemoTest, SeveralNodesTakeAPartEach) {
  FakeHolder other(handle_, parts_.parts());
  const Ran ran = Demo(absl::StrCat(node_.cache.target(), ",", other.cache.target()));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = ran.json();
  EXPECT_EQ(json["tokens_equal"], true);
  ASSERT_THAT(json["places"], SizeIs(2));
  EXPECT_THAT(json["places"][0].get<std::string>(), HasSubstr(node_.cache.target()));
  EXPECT_THAT(json["places"][1].get<std::string>(), HasSubstr(other.cache.target()));
  EXPECT_EQ(json["round_trips"], 21 * 4);  // At once.
  EXPECT_EQ(json["requests"], 2 * 21 * 4);
}

TEST_F(DecodeDemoTest, ANodeWithoutMemoryForSequencesIsReadOverLeasesAndItSaysWhatToDo) {
  node_.decode.HaveNoMemory();
  const Ran ran = Demo(node_.cache.target());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["tokens_equal"], true);
  EXPECT_EQ(ran.json()["held_as"], "leases");
  EXPECT_THAT(ran.json()["no_sequences"].get<std::string>(), HasSubstr("--decode-memory"));
  EXPECT_THAT(ran.err, HasSubstr("--decode-memory=256MiB"));
}

TEST_F(DecodeDemoTest, ANodeThatServesNoAttentionIsSaidWithWhatToDo) {
  node_.decode.HaveNoMemory();
  node_.decode.FailStreams(1, absl::FailedPreconditionError("this node serves no attention"));
  const Ran ran = Demo(node_.cache.target());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("this node serves no attention\nStart it as `cairn-node "));
  EXPECT_THAT(ran.err, Not(HasSubstr("cairnctl register")));
}

TEST_F(DecodeDemoTest, ThePrefixCanBeFetchedInstead) {
  const Ran ran = Demo(node_.cache.target(), {"--way", "fetch"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["tokens_equal"], true);
  EXPECT_EQ(ran.json()["held_as"], "fetched");
  EXPECT_EQ(ran.json()["moved_bytes"], ran.json()["fetch_bytes"]);
  EXPECT_EQ(node_.decode.steps(), 0);
  const Ran by_cost = Demo(node_.cache.target(), {"--way", "cost"});
  ASSERT_EQ(by_cost.code, 0) << by_cost.err;
  EXPECT_THAT(by_cost.json()["cost"].get<std::string>(), HasSubstr("20 new tokens"));
}

TEST_F(DecodeDemoTest, ALostStreamIsMadeGood) {
  node_.decode.CutStreams(1, 30);
  const Ran ran = Demo(node_.cache.target());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["tokens_equal"], true);
  EXPECT_GE(ran.json()["retries"], 1);
}

TEST_F(DecodeDemoTest, OtherTokensThanAWorkerAloneWouldHaveAreAFailure) {
  // Wrong, and yet numbers that could be.
  node_.decode.Bend([](v1::DecodeResponse* response) {
    std::string* output = response->mutable_results(0)->mutable_output();
    for (size_t at = 0; at < output->size(); at += sizeof(float)) {
      const float value = 3.0f;
      std::memcpy(output->data() + at, &value, sizeof(value));
    }
  });
  const Ran ran = Demo(node_.cache.target());
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json()["tokens_equal"], false);
  EXPECT_THAT(ran.err, HasSubstr("where worker 1 alone has"));
}

TEST_F(DecodeDemoTest, ANodeThatIsNotThereIsNamed) {
  const Ran ran = Demo("127.0.0.1:1");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST_F(DecodeDemoTest, TheHelpTeaches) {
  const Ran ran = RunDemo({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("Worker 2 has none of that KV"));
  EXPECT_THAT(ran.out, HasSubstr("--decode-memory"));
  EXPECT_THAT(ran.out, HasSubstr("--prompt-tokens N"));
}

TEST_F(DecodeDemoTest, CommandLinesThatMakeNoSenseEndWith2) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--new-tokens", "0"},
                                             {"--prompt-tokens", "many"},
                                             {"--prompt-tokens", "15"},
                                             {"--prompt-tokens", "100000"},
                                             {"--block-tokens", "0"},
                                             {"--way", "carry"},
                                             {"--node", "127.0.0.1:1,,127.0.0.1:2"},
                                             {"--output", "xml"}}) {
    const Ran ran = RunDemo(arguments);
    EXPECT_EQ(ran.code, 2) << arguments[0] << " " << arguments[1] << ran.err;
    EXPECT_THAT(ran.err, Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace cairn::ctl
