// Method: texts as operators write them, good and bad; what a bad one is told.
#include "cache_node/pull/peer_list.h"

#include <gmock/gmock.h>

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

TEST(PeerList, AnswersAddressesByNode) {
  const auto peers =
      PeerList::Parse("# peers\nnode-2  10.0.0.2:7070\n\nnode-3\tunix:/run/n3 # x\n", "peers");
  ASSERT_TRUE(peers.ok()) << peers.status();
  EXPECT_EQ(peers->size(), 2u);
  EXPECT_EQ(*peers->Find("node-2"), "10.0.0.2:7070");
  EXPECT_EQ(*peers->Find("node-3"), "unix:/run/n3");
  EXPECT_EQ(peers->Find("10.0.0.2:7070"), nullptr) << "an address is no name";
  EXPECT_TRUE(PeerList::Parse("", "peers").ok());
}

TEST(PeerList, SaysWhichLineIsWrongAndWhatToWrite) {
  for (const auto& [text, complaint] : std::vector<std::pair<std::string, std::string>>{
           {"node-2", "node's id and its address"},
           {"node-2 a:1 b:2", "node's id and its address"},
           {"node-2 nowhere", "nowhere"},
           {"node-2 127.0.0.1:99999", "99999"},
           {"node-2 a:1\nnode-2 b:1", "has a line already"}}) {
    const auto peers = PeerList::Parse(text, "peers");
    ASSERT_FALSE(peers.ok()) << text;
    EXPECT_EQ(peers.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(peers.status().message()), HasSubstr(complaint));
    EXPECT_THAT(std::string(peers.status().message()), HasSubstr("peers"));
  }
}

}  // namespace
}  // namespace cairn::node
