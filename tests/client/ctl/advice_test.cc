// What cairnctl says to do when something is in the way: a server that is not there or another one,
// a refusal, a command line that asks for nothing. Through the function that main calls, against
// the client's fake node.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "tests/client/cpp/fake_node.h"

namespace cairn::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;

  Json json() const { return Json::parse(out); }
};

Ran RunCtl(const std::vector<std::string>& arguments) {
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

TEST(AdviceTest, AnAddressThatIsNoneEndsWith2BeforeAnybodyIsAsked) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{"clear", "--node", "a:1,b"}, "--node: 'b' is no address to connect to: there is no port"},
      {{"describe", "--node", "nonsense"}, "--node: 'nonsense' is no address to connect to"},
      {{"describe", "--node", "127.0.0.1:99999"}, "the port is not a number from 1 to 65535"},
      {{"replay", "--node", "nonsense"}, "--node: 'nonsense' is no address to connect to"},
      {{"replay", "--router", ""}, "--router: '' is no address to connect to"},
      {{"route", "--router", "127.0.0.1:1,"}, "--router: '' is no address to connect to"},
      {{"explain", "--router", "127.0.0.1:1,b"}, "--router: 'b' is no address to connect to"},
  };
  for (const auto& one : cases) {
    const Ran ran = RunCtl(one.arguments);
    EXPECT_EQ(ran.code, 2) << one.says;
    EXPECT_THAT(ran.err, HasSubstr(one.says));
    EXPECT_THAT(ran.err, HasSubstr(absl::StrCat("`cairnctl ", one.arguments[0], " --help` lists")));
    EXPECT_THAT(ran.err, Not(HasSubstr("--tls-key")));
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

TEST(AdviceTest, NodeThatIsNotThereEndsWith1AndAdvice) {
  const Ran ran = RunCtl({"describe", "--node", "127.0.0.1:1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("cairnctl describe: UNAVAILABLE"));
  EXPECT_THAT(ran.err, HasSubstr("Is a node listening there?"));
  EXPECT_THAT(ran.err, HasSubstr("One that serves TLS hangs up on a call without --tls-ca"));
}

TEST(AdviceTest, RouterThatIsNotThereIsNotCalledANode) {
  const Ran ran = RunCtl({"replay", "--router=127.0.0.1:1", "--requests=1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("Is a router listening there?"));
}

// Commands that ask a node.
class AdviceNodeTest : public ::testing::Test {
 protected:
  AdviceNodeTest() : node_(*ReadHandle(*CommandLine::Parse({NamespaceFlag()}, {}))) {}

  Ran RunOn(std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--node=", node_.target()));
    arguments.push_back("--output=json");
    return RunCtl(arguments);
  }

  testing::FakeNode node_;
};

TEST_F(AdviceNodeTest, RefusalsComeWithTheirStatusAndAdvice) {
  node_.FailNext("Reserve", absl::FailedPreconditionError("namespace unknown"));
  const Ran ran = RunOn({"put", "--generate"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("FAILED_PRECONDITION: namespace unknown"));
  EXPECT_THAT(ran.err, HasSubstr("cairnctl register"));
  node_.FailNext("PullBlocks", absl::FailedPreconditionError("source: 'n9' is no peer of this"));
  const Ran pull = RunOn({"pull", "--from=n9"});
  EXPECT_EQ(pull.code, 1);
  EXPECT_THAT(pull.err, Not(HasSubstr("cairnctl register"))) << "that would not help";
}

TEST_F(AdviceNodeTest, WhatIsNoNodeIsSaidToBeNone) {
  node_.FailNext("Describe", absl::UnimplementedError(""));
  const Ran ran = RunOn({"describe"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("What listens there is no cache node"));
}

TEST_F(AdviceNodeTest, APromptWithoutAFullBlockIsSaidToHaveNone) {
  const Ran ran = RunOn({"put", "--generate", "--tokens=0..14"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.json()["blocks_total"], 0);
  EXPECT_THAT(ran.err, HasSubstr("no full block, which is 16 tokens"));
  EXPECT_THAT(RunOn({"put", "--generate"}).err, IsEmpty());
}

}  // namespace
}  // namespace cairn::ctl
