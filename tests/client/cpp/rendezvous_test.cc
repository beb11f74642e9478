// Many prompts over a few replicas: everyone gets a share, prompts that begin alike stay together,
// and a replica that leaves moves nobody else's prompts.
#include "client/cpp/rendezvous.h"

#include <gmock/gmock.h>

#include <map>

#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

using ::testing::Gt;

constexpr uint8_t kPrompts = 200;

// Of prompt `prompt`; only its block number `changed` is its own.
std::vector<BlockKey> KeysOf(uint8_t prompt, size_t changed, size_t blocks = 6) {
  std::vector<BlockKey> keys(blocks);
  for (size_t i = 0; i < blocks; ++i) keys[i].bytes[0] = static_cast<uint8_t>(i);
  keys[changed].bytes[1] = prompt;
  return keys;
}

std::vector<RoutedReplica> Replicas(const std::vector<std::string>& workers) {
  std::vector<RoutedReplica> replicas;
  for (const std::string& worker : workers) {
    replicas.emplace_back();
    replicas.back().worker_address = worker;
    replicas.back().node_addresses = {absl::StrCat("of ", worker)};
  }
  return replicas;
}

std::string FirstOf(const std::vector<BlockKey>& keys, const std::vector<std::string>& workers) {
  const std::vector<RoutedReplica> ordered = OrderByRendezvous(keys, Replicas(workers));
  EXPECT_EQ(ordered.size(), workers.size());
  EXPECT_EQ(ordered[0].node_addresses[0], absl::StrCat("of ", ordered[0].worker_address));
  return ordered[0].worker_address;
}

TEST(RendezvousTest, EveryReplicaGetsAShareWhateverTheirOrder) {
  std::map<std::string, int> prompts_of;
  for (uint8_t prompt = 0; prompt < kPrompts; ++prompt) {
    const std::vector<BlockKey> keys = KeysOf(prompt, 3);
    const std::string first = FirstOf(keys, {"a", "b", "c"});
    EXPECT_EQ(FirstOf(keys, {"c", "a", "b"}), first);
    ++prompts_of[first];
  }
  for (const char* worker : {"a", "b", "c"}) EXPECT_THAT(prompts_of[worker], Gt(kPrompts / 6));
}

TEST(RendezvousTest, TheFirstFourBlocksDecide) {
  const std::string first = FirstOf(KeysOf(0, 4), {"a", "b", "c"});
  for (uint8_t prompt = 1; prompt < kPrompts; ++prompt) {
    EXPECT_EQ(FirstOf(KeysOf(prompt, 4), {"a", "b", "c"}), first);
  }
}

TEST(RendezvousTest, AReplicaThatLeavesMovesOnlyItsOwnPrompts) {
  for (uint8_t prompt = 0; prompt < kPrompts; ++prompt) {
    const std::vector<BlockKey> keys = KeysOf(prompt, 0);
    const std::string first = FirstOf(keys, {"a", "b", "c"});
    if (first != "c") {
      EXPECT_EQ(FirstOf(keys, {"a", "b"}), first);
    }
  }
}

TEST(RendezvousTest, APromptOfOneBlockHasItsPlace) {
  EXPECT_EQ(FirstOf(KeysOf(7, 0, 1), {"a", "b"}), FirstOf(KeysOf(7, 0, 1), {"b", "a"}));
}

TEST(RendezvousTest, WithoutAFullBlockTheyStayAsTheyStand) {
  EXPECT_EQ(FirstOf({}, {"b", "a"}), "b");
  EXPECT_TRUE(OrderByRendezvous(KeysOf(1, 0), {}).empty());
}

}  // namespace
}  // namespace cairn
