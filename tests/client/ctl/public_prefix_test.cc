// What an operator does to list public prefixes, through the function that main calls: the key of a
// prefix as a line of the list, the lines of a whole trace, and command lines that make no sense.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/replay/replay_namespace.h"
#include "common/security/public_prefixes.h"
#include "tests/client/cpp/fake_node.h"

namespace cairn::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran RunCtl(const std::vector<std::string>& arguments, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCairnctl(arguments, {&in, &out}, &err);
  return {code, out.str(), err.str()};
}

TEST(PublicPrefixTest, TheLastKeyIsALineOfTheList) {
  const Ran all = RunCtl({"keys", "--tokens", "0..63", "--output", "json"});
  ASSERT_EQ(all.code, 0) << all.err;
  const Json keys = Json::parse(all.out)["keys_hex"];
  ASSERT_THAT(keys, SizeIs(4));
  const Ran last = RunCtl({"keys", "--tokens", "0..63", "--public"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(last.out, absl::StrCat(keys[3].get<std::string>(), "\n"));
  EXPECT_EQ(PublicPrefixes::Parse(last.out, "list")->last_keys().size(), 1u);
  EXPECT_THAT(RunCtl({"keys", "--tokens", "0..63", "--tenant", "acme", "--public"}).err,
              HasSubstr("nothing to list"));
  Json prompt = {{"regions", {{{"scope", {{"tenant", "public"}}}, {"tokens", Json::array()}}}}};
  for (int token = 0; token < 64; ++token) prompt["regions"][0]["tokens"].push_back(token);
  EXPECT_EQ(RunCtl({"keys", "--prompt", "-", "--public"}, prompt.dump()).out, last.out);
}

TEST(PublicPrefixTest, APrefixLongerThanAReserveHasALineForTheEndOfEach) {
  // Of 16 tokens a block: a reserve takes 4,096 blocks.
  const Ran long_one = RunCtl({"keys", "--tokens", "0..147471", "--public"});
  ASSERT_EQ(long_one.code, 0) << long_one.err;
  const PublicPrefixes prefixes = *PublicPrefixes::Parse(long_one.out, "list");
  const Json keys =
      Json::parse(RunCtl({"keys", "--tokens", "0..147471", "--output=json"}).out)["keys_hex"];
  ASSERT_THAT(keys, SizeIs(9217));
  EXPECT_EQ(prefixes.last_keys().size(), 3u);
  for (const size_t end : {size_t{4095}, size_t{8191}, size_t{9216}}) {
    EXPECT_THAT(long_one.out, HasSubstr(keys[end].get<std::string>()));
  }
}

TEST(PublicPrefixTest, FlagsThatSayTwoThingsAreRefused) {
  const Ran both = RunCtl({"keys", "--input", "-", "--tokens", "0..63"}, "{}");
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--input and --tokens exclude each other"));
  EXPECT_EQ(RunCtl({"keys", "--tokens", "0..63", "--public", "--output", "json"}).code, 2);
  EXPECT_THAT(RunCtl({"keys", "--tokens", "0", "--public"}).err, HasSubstr("nothing to list"));
  EXPECT_THAT(RunCtl({"replay", "--publish"}).err, HasSubstr("without --public-tokens"));
  EXPECT_THAT(RunCtl({"replay", "--plan", "--public-tokens", "63"}).err,
              HasSubstr("public_tokens: 63; whole blocks of"));
}

TEST(PublicPrefixTest, AReplaysPlanPrintsTheLinesThatItNeeds) {
  const Ran plan = RunCtl({"replay", "--plan", "--requests", "50", "--public-tokens", "64",
                           "--block-tokens", "64", "--tenant", "acme", "--output", "json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Json prefixes = Json::parse(plan.out)["public_prefixes"];
  EXPECT_GT(prefixes.size(), 0u);
  EXPECT_LE(prefixes.size(), 50u);
  for (const Json& key : prefixes) {
    EXPECT_TRUE(PublicPrefixes::Parse(key.get<std::string>(), "list").ok());
  }
}

TEST(PublicPrefixTest, AReplayPublishesAndReadsPublicRegions) {
  const cairn::testing::FakeNode node(*replay::MakeReplayNamespace(64, 1024));
  const std::vector<std::string> flags = {
      "replay", "--node",          node.target(), "--requests",     "20",  "--workers",
      "1",      "--block-bytes",   "1024",        "--block-tokens", "64",  "--tenant",
      "acme",   "--public-tokens", "64",          "--output",       "json"};
  std::vector<std::string> publishing = flags;
  publishing.push_back("--publish");
  const Ran first = RunCtl(publishing);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(Json::parse(first.out)["own_scope_requests"], 0);
  const Ran second = RunCtl(flags);
  ASSERT_EQ(second.code, 0) << second.err;
  const Json report = Json::parse(second.out);
  EXPECT_EQ(report["own_scope_requests"], 0);
  EXPECT_GT(report["shared_requests"], 0);
  EXPECT_EQ(report["hit_blocks_public"], report["shared_requests"]);
}

}  // namespace
}  // namespace cairn::ctl
