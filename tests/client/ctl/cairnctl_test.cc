// The command line as a person uses it, through the function that main calls: what it prints, what
// it refuses and with which exit code. Commands that ask a node run against the client's fake node.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "tests/client/cpp/fake_node.h"
#include "tests/testing/identity_vectors.h"

namespace cairn::ctl {
namespace {

using ::testing::ElementsAre;
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

Ran RunCtl(const std::vector<std::string>& arguments, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

Json VectorsFile() {
  std::ifstream file(absl::StrCat(CAIRN_SOURCE_DIR, "/tests/vectors/identity.json"));
  return Json::parse(file);
}

TEST(CairnctlTest, KeysAgreeWithEveryGolden) {
  const Json vectors = VectorsFile();
  ASSERT_THAT(vectors["keys"], SizeIs(20));
  for (const Json& one : vectors["keys"]) {
    const Ran ran = RunCtl({"keys", "--input", "-", "--output", "json"}, one.dump());
    ASSERT_EQ(ran.code, 0) << one["name"] << ran.err;
    EXPECT_EQ(ran.json(), Json::object({{"keys_hex", one["keys_hex"]}})) << one["name"];
  }
}

TEST(CairnctlTest, KeysAgreeWithExternalGoldens) {
  const Json external = VectorsFile()["external"];
  Json input = {{"namespace", external["namespace"]}, {"regions", Json::array()}};
  input["regions"].push_back(
      {{"scope", {{"tenant", "public"}}}, {"external_ids_hex", Json::array()}});
  std::vector<std::string> keys;
  for (const Json& one : external["cases"]) {
    input["regions"][0]["external_ids_hex"].push_back(one["id_hex"]);
    keys.push_back(one["key_hex"]);
  }
  const Ran ran = RunCtl({"keys", "--output=json"}, input.dump());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["keys_hex"], Json(keys));
}

TEST(CairnctlTest, KeysReadsAFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/keys.json");
  const Json one = VectorsFile()["keys"][0];
  std::ofstream(path) << one;
  const Ran ran = RunCtl({"keys", "--input", path, "--output", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json()["keys_hex"], one["keys_hex"]);
  EXPECT_EQ(RunCtl({"keys", "--input", path + ".not"}).code, 1);
}

// Bends a good input and says what is wrong with it.
std::string ErrorOf(const std::function<void(Json*)>& bend) {
  Json input = VectorsFile()["keys"][15];
  bend(&input);
  const Ran ran = RunCtl({"keys"}, input.dump());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, IsEmpty());
  return ran.err;
}

TEST(CairnctlTest, WrongInputIsNamedByItsPlace) {
  const auto drop = [](const char* pointer) {
    return [pointer](Json* input) {
      const Json::json_pointer at(pointer);
      input->at(at.parent_pointer()).erase(at.back());
    };
  };
  const auto set = [](const char* pointer, const Json& value) {
    return [pointer, value](Json* input) { (*input)[Json::json_pointer(pointer)] = value; };
  };
  EXPECT_THAT(ErrorOf(drop("/namespace")), HasSubstr("namespace: missing"));
  EXPECT_THAT(ErrorOf(drop("/regions")), HasSubstr("regions: missing"));
  EXPECT_THAT(ErrorOf(drop("/namespace/model")), HasSubstr("namespace.model: missing"));
  EXPECT_THAT(ErrorOf(drop("/namespace/layout")), HasSubstr("namespace.layout: missing"));
  EXPECT_THAT(ErrorOf(drop("/namespace/layout/groups/0/layers")),
              HasSubstr("namespace.layout.groups[0].layers: missing"));
  EXPECT_THAT(ErrorOf(set("/namespace/layout/block_tokens", -1)),
              HasSubstr("namespace.layout.block_tokens: must be an integer from 0 to 4294967295"));
  EXPECT_THAT(ErrorOf(set("/namespace/layout/block_tokens", 0)), HasSubstr("block_tokens"));
  EXPECT_THAT(ErrorOf(set("/namespace/layout/groups", 7)),
              HasSubstr("namespace.layout.groups: must be an array, not 7"));
  EXPECT_THAT(ErrorOf(set("/namespace/layout/groups/0/layer", 7)),
              HasSubstr("layer: unknown field; did you mean layers?"));
  EXPECT_THAT(ErrorOf(set("/namespace/numerics_hex", "0g")), HasSubstr("namespace.numerics_hex"));
  EXPECT_THAT(ErrorOf(set("/namespace/model", 3)),
              HasSubstr("namespace.model: must be a string, not 3"));
  EXPECT_THAT(ErrorOf(drop("/regions/0/scope")), HasSubstr("regions[0].scope: missing"));
  EXPECT_THAT(ErrorOf(drop("/regions/0/scope/tenant")),
              HasSubstr("regions[0].scope.tenant: missing"));
  EXPECT_THAT(ErrorOf(set("/regions/0/tokens/5", 1.5)), HasSubstr("regions[0].tokens[5]"));
  EXPECT_THAT(ErrorOf(set("/regions/0/tokens/5", 4294967296)), HasSubstr("regions[0].tokens[5]"));
  EXPECT_THAT(ErrorOf(set("/extras", 1)), HasSubstr("extras: must be an object"));
  EXPECT_THAT(ErrorOf(set("/extras/x", Json::array())), HasSubstr("extras.x"));
  EXPECT_THAT(ErrorOf(set("/extras/0/0/kind", 3)), HasSubstr("extras.0[0].kind: 3"));
  EXPECT_THAT(ErrorOf(set("/extras/0/0/digest_hex", "00")),
              HasSubstr("extras.0[0].digest_hex: must be 32 bytes, not 1"));
  EXPECT_THAT(ErrorOf(set("/extras/0/0/start", 2147483648)), HasSubstr("extras.0[0].start"));
  EXPECT_THAT(RunCtl({"keys"}, "{").err, HasSubstr("not valid JSON"));
  EXPECT_THAT(RunCtl({"keys"}, "[]").err, HasSubstr("must be an object"));
}

TEST(CairnctlTest, CommandLinesThatMakeNoSenseEndWith2AndUsage) {
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{}, "usage: cairnctl COMMAND"},
      {{"lokup"}, "unknown command 'lokup'; did you mean lookup?"},
      {{"xyzzyxyzzy"}, "unknown command 'xyzzyxyzzy'\n"},
      {{"lookup", "--nod", "x"}, "unknown flag '--nod'; did you mean --node?"},
      {{"lookup", "--node"}, "--node needs a value"},
      {{"lookup", "node"}, "unexpected argument 'node'"},
      {{"lookup", "--by-keys=1"}, "--by-keys takes no value"},
      {{"lookup", "--node", "a", "--node", "b"}, "--node is given twice"},
      {{"lookup", "--tokens", "1..x"}, "--tokens: '1..x'"},
      {{"lookup", "--tokens", "5..1"}, "--tokens: '5..1'"},
      {{"lookup", "--tokens", "0..4294967295"}, "--tokens: more than"},
      {{"lookup", "--tokens", ""}, "--tokens"},
      {{"lookup", "--salt-hex", "0"}, "--salt-hex"},
      {{"lookup", "--prompt", "-", "--tokens", "1"}, "exclude each other"},
      {{"put"}, "--payload FILE and --generate"},
      {{"put", "--payload", "x", "--generate"}, "--payload FILE and --generate"},
      {{"retire"}, "--fingerprint HEX and --namespace FILE"},
      {{"retire", "--fingerprint", "00"}, "must be 64 hexadecimal digits"},
      {{"clear", "--node", "a:1,,b:1"}, "--node: 'a:1,,b:1' names an empty node"},
      {{"lookup", "--prompt", "-", "--tenant", "acme"}, "--as says for whom you act"},
      {{"lookup", "--wait-ms", "10001"}, "--wait-ms: '10001' is no whole number from 0 to 10000"},
  };
  for (const auto& one : cases) {
    const Ran ran = RunCtl(one.arguments);
    EXPECT_EQ(ran.code, 2) << one.says;
    EXPECT_THAT(ran.err, HasSubstr(one.says));
    EXPECT_THAT(ran.err, HasSubstr("usage: cairnctl"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

TEST(CairnctlTest, OutputFormatThatIsNoneEndsWith2) {
  const Ran ran = RunCtl({"keys", "--output", "xml"}, VectorsFile()["keys"][0].dump());
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--output: 'xml'; must be text or json"));
}

TEST(CairnctlTest, HelpIsThereForEachCommand) {
  EXPECT_EQ(RunCtl({"--help"}).code, 0);
  EXPECT_THAT(RunCtl({"--help"}).out, HasSubstr("describe"));
  for (const char* command :
       {"describe", "register", "lookup", "put", "get", "clear", "retire", "keys"}) {
    const Ran ran = RunCtl({command, "--help"});
    EXPECT_EQ(ran.code, 0);
    EXPECT_THAT(ran.out, HasSubstr(absl::StrCat("usage: cairnctl ", command)));
    EXPECT_THAT(ran.out, HasSubstr("--output"));
  }
}

TEST(CairnctlTest, ExampleFileIsTheBuiltInNamespace) {
  const std::string path = absl::StrCat(CAIRN_SOURCE_DIR, "/client/ctl/example_namespace.json");
  const std::vector<FlagSpec> specs = {NamespaceFlag()};
  const auto built_in = ReadHandle(*CommandLine::Parse(specs, {}));
  const auto from_file = ReadHandle(*CommandLine::Parse(specs, {"--namespace", path}));
  ASSERT_TRUE(built_in.ok()) << built_in.status();
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_EQ(built_in->fingerprint(), from_file->fingerprint());
}

TEST(CairnctlTest, TokensAreNumbersAndRanges) {
  EXPECT_THAT(*ParseTokens("7"), ElementsAre(7u));
  EXPECT_THAT(*ParseTokens("1,3..5,4294967295"), ElementsAre(1u, 3u, 4u, 5u, 4294967295u));
}

TEST(CairnctlTest, WhatWouldBeOfNoAccountIsRefused) {
  EXPECT_EQ(RunCtl({"replay", "--trace=t", "--seed=2"}).code, 2);
  EXPECT_EQ(RunCtl({"replay", "--plan", "--node=127.0.0.1:1"}).code, 2);
  EXPECT_EQ(RunCtl({"describe", "--tenant=acme", "--tls-name=node"}).code, 2);
}

// Commands that ask a node.
class CairnctlNodeTest : public ::testing::Test {
 protected:
  CairnctlNodeTest() : node_(*ReadHandle(*CommandLine::Parse({NamespaceFlag()}, {}))) {}

  Ran RunOn(std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--node=", node_.target()));
    arguments.push_back("--output=json");
    return RunCtl(arguments);
  }

  testing::FakeNode node_;
};

TEST_F(CairnctlNodeTest, PutGetAndVerifyWithTheDefaults) {
  EXPECT_EQ(RunOn({"register"}).json()["block_tokens"], 16);
  const Ran put = RunOn({"put", "--generate"});
  ASSERT_EQ(put.code, 0) << put.err;
  EXPECT_EQ(put.json()["blocks_written"], 4);
  EXPECT_EQ(put.json()["complete"], true);
  const Ran again = RunOn({"put", "--generate"});
  EXPECT_EQ(again.json()["blocks_already_present"], 4);
  const Ran lookup = RunOn({"lookup", "--by-keys"});
  EXPECT_EQ(lookup.json()["blocks_present"], 4);
  const Ran get = RunOn({"get", "--verify-generated"});
  ASSERT_EQ(get.code, 0) << get.err;
  EXPECT_EQ(get.json()["blocks_usable"], 4);
  EXPECT_EQ(get.json()["digests_verified"], 32);
  ASSERT_THAT(node_.ended(), SizeIs(1));
  EXPECT_THAT(node_.ended()[0].usable_blocks(), ElementsAre(4u));
}

TEST_F(CairnctlNodeTest, PutFromAFileComesBackToAFile) {
  const std::string in = absl::StrCat(::testing::TempDir(), "/put.bin");
  const std::string out = absl::StrCat(::testing::TempDir(), "/get.bin");
  std::string payload(4 * 32768, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 7 + i / 251);
  std::ofstream(in, std::ios::binary) << payload;
  const Ran put = RunOn({"put", "--payload", in});
  ASSERT_EQ(put.code, 0) << put.err;
  ASSERT_EQ(RunOn({"get", "--out", out}).code, 0);
  std::ifstream file(out, std::ios::binary);
  const std::string got((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(got, payload);
  const Ran verify = RunOn({"get", "--verify-generated"});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.err, HasSubstr("not the bytes that --generate writes"));
}

TEST_F(CairnctlNodeTest, PayloadOfAnotherSizeIsRefusedWithBothSizes) {
  const std::string in = absl::StrCat(::testing::TempDir(), "/short.bin");
  std::ofstream(in) << "short";
  const Ran ran = RunOn({"put", "--payload", in});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("5 bytes; 4 blocks of 32768 are 131072"));
}

TEST_F(CairnctlNodeTest, WrongBytesEndWith1) {
  ASSERT_EQ(RunOn({"put", "--generate"}).code, 0);
  node_.BendGet(
      [](testing::FakeNode::Frames* frames) { (*frames)[0].mutable_payload()->at(0) ^= 1; });
  const Ran ran = RunOn({"get"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json()["digests_wrong"], 1);
  EXPECT_THAT(ran.err, HasSubstr("DATA_LOSS"));
}

TEST_F(CairnctlNodeTest, LookupPromotesAndWaitsWhenItIsTold) {
  ASSERT_EQ(RunOn({"lookup"}).code, 0);
  ASSERT_EQ(RunOn({"lookup", "--promote", "--wait-ms", "20"}).code, 0);
  const std::vector<v1::LookupRequest> lookups = node_.lookups();
  ASSERT_THAT(lookups, SizeIs(2));
  EXPECT_FALSE(lookups[0].promote());
  EXPECT_EQ(lookups[0].wait_ms(), 0u);
  EXPECT_TRUE(lookups[1].promote());
  EXPECT_EQ(lookups[1].wait_ms(), 20u);
}

TEST_F(CairnctlNodeTest, NothingReadIsNothingVerified) {
  const Ran ran = RunOn({"get", "--verify-generated"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("nothing was verified"));
  EXPECT_EQ(RunOn({"get"}).code, 0);
}

TEST_F(CairnctlNodeTest, PutSaysHowLongBlocksAreToBeKept) {
  ASSERT_EQ(RunOn({"put", "--generate", "--priority=90", "--priority-for=2m", "--ttl=1h",
                   "--pin-for=30s"})
                .code,
            0);
  ASSERT_THAT(node_.reserves(), SizeIs(1));
  const v1::Retention retention = node_.reserves()[0].retention();
  EXPECT_EQ(retention.priority(), 90u);
  EXPECT_EQ(retention.priority_ms(), 120'000u);
  EXPECT_EQ(retention.ttl_ms(), 3'600'000u);
  EXPECT_EQ(retention.pin_ms(), 30'000u);
  EXPECT_EQ(RunOn({"put", "--generate", "--priority-for=2m"}).code, 2);
}

TEST_F(CairnctlNodeTest, PinPinsAndReleasesWhatIsThere) {
  const Ran nothing = RunOn({"pin", "--for=30m"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_EQ(nothing.json()["PIN_OUTCOME_NOT_THERE"], 4);
  EXPECT_THAT(nothing.err, HasSubstr("0 of 4 blocks pinned; 4 not in host memory: "));
  ASSERT_EQ(RunOn({"put", "--generate"}).code, 0);
  const Ran pinned = RunOn({"pin", "--for=30m"});
  EXPECT_EQ(pinned.code, 0) << pinned.err;
  EXPECT_EQ(pinned.json()["PIN_OUTCOME_PINNED"], 4);
  EXPECT_EQ(node_.pins().back().pin_ms(), 1'800'000u);
  EXPECT_EQ(RunOn({"pin", "--release"}).json()["PIN_OUTCOME_RELEASED"], 4);
  EXPECT_EQ(RunOn({"pin", "--release", "--for=1s"}).code, 2);
}

TEST_F(CairnctlNodeTest, PullAsksUntilNothingIsOnItsWayAndSaysWhyNot) {
  EXPECT_EQ(RunOn({"pull"}).code, 2) << "from whom?";
  node_.SayPulls({v1::PULL_OUTCOME_IN_PROGRESS, v1::PULL_OUTCOME_PULLED});
  const Ran pulled = RunOn({"pull", "--from=n1"});
  EXPECT_EQ(pulled.code, 0) << pulled.err;
  EXPECT_EQ(pulled.json()["PULL_OUTCOME_PULLED"], 4);
  EXPECT_THAT(node_.pulls(), SizeIs(2));
  EXPECT_EQ(node_.pulls()[0].source(), "n1");
  node_.SayPulls({v1::PULL_OUTCOME_SOURCE_FAILED}, "nobody listens there");
  const Ran failed = RunOn({"pull", "--from=n1"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.json()["PULL_OUTCOME_SOURCE_FAILED"], 4);
  EXPECT_THAT(failed.err, HasSubstr("0 of 4 blocks are there; n1: nobody listens there"));
  node_.SayPulls({v1::PULL_OUTCOME_IN_PROGRESS});
  EXPECT_THAT(RunOn({"pull", "--from=n1", "--wait-ms=0"}).err, HasSubstr("ask again"));
}

// Clear and retire over several nodes.
class CairnctlFleetTest : public CairnctlNodeTest {
 protected:
  CairnctlFleetTest() : other_(*ReadHandle(*CommandLine::Parse({NamespaceFlag()}, {}))) {}

  Ran RunOnBoth(std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--node=", node_.target(), ",", other_.target()));
    arguments.push_back("--output=json");
    return RunCtl(arguments);
  }

  testing::FakeNode other_;
};

const std::vector<std::string> kRetireExample = {
    "retire", "--namespace", absl::StrCat(CAIRN_SOURCE_DIR, "/client/ctl/example_namespace.json")};

TEST_F(CairnctlFleetTest, EachNodeIsCleared) {
  ASSERT_EQ(RunOn({"put", "--generate"}).code, 0);
  const Ran ran = RunOnBoth({"clear"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_THAT(ran.json()["nodes"], SizeIs(2));
  EXPECT_EQ(ran.json()["nodes"][0]["node"], node_.target());
  EXPECT_EQ(ran.json()["nodes"][0]["blocks_removed"], 4);
  EXPECT_EQ(ran.json()["nodes"][1]["blocks_removed"], 0);
  EXPECT_THAT(ran.json()["failed_nodes"], IsEmpty());
  EXPECT_EQ(other_.Calls("ClearScope"), 1);
}

TEST_F(CairnctlFleetTest, OneNodeAnswersAsBefore) {
  const Ran ran = RunOn({"clear"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.json(), Json::parse(R"({"blocks_removed": 0, "pinned_bytes": 0})"));
}

TEST_F(CairnctlFleetTest, NodesThatAreNotReachedAreNamedAndTheOthersAsked) {
  node_.Stop();
  for (const auto& command : {std::vector<std::string>{"clear"}, kRetireExample}) {
    const Ran ran = RunOnBoth(command);
    EXPECT_EQ(ran.code, 1) << command[0];
    EXPECT_EQ(ran.json()["failed_nodes"], Json::array({node_.target()}));
    EXPECT_THAT(std::string(ran.json()["nodes"][0]["error"]), HasSubstr("UNAVAILABLE"));
    EXPECT_THAT(ran.err, HasSubstr("UNAVAILABLE: 1 of 2 nodes did not do it"));
    EXPECT_THAT(ran.err, HasSubstr(node_.target()));
    EXPECT_THAT(ran.err, Not(HasSubstr(other_.target())));
  }
  EXPECT_EQ(other_.Calls("ClearScope"), 1);
  EXPECT_EQ(other_.Calls("RetireNamespace"), 1);
}

TEST_F(CairnctlFleetTest, ARefusalCountsAsNotDone) {
  other_.FailNext("RetireNamespace", absl::PermissionDeniedError("no admin"));
  const Ran ran = RunOnBoth(kRetireExample);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json()["nodes"][0]["done"], true);
  EXPECT_EQ(ran.json()["failed_nodes"], Json::array({other_.target()}));
  EXPECT_THAT(ran.err, HasSubstr("PERMISSION_DENIED: 1 of 2 nodes did not do it"));
}

}  // namespace
}  // namespace cairn::ctl
