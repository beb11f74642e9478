// Values that another version of any program must come to too, from a script written apart; and
// which blocks of a prompt count.
#include "common/identity/rendezvous.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

std::vector<BlockKey> KeysOf(size_t blocks) {
  std::vector<BlockKey> keys(blocks);
  for (size_t i = 0; i < blocks; ++i) keys[i].bytes[0] = static_cast<uint8_t>(i + 1);
  return keys;
}

TEST(Rendezvous, StaysTheSameInEveryBuild) {
  EXPECT_EQ(RendezvousReplica("worker-1"), 0x3d5bd1839e9f0213u);
  EXPECT_EQ(RendezvousWeight(0x0123456789abcdef, RendezvousReplica("worker-1")),
            0x1d199dc5f2dc150au);
  EXPECT_EQ(RendezvousPrompt(KeysOf(4)), 0x99120cdfe88ef09fu);
}

TEST(Rendezvous, TheFirstBlocksCountInTheirOrder) {
  std::vector<BlockKey> keys = KeysOf(6);
  const uint64_t prompt = RendezvousPrompt(keys);
  EXPECT_EQ(RendezvousPrompt(KeysOf(4)), prompt);
  EXPECT_NE(RendezvousPrompt(KeysOf(3)), prompt);
  std::swap(keys[0], keys[1]);
  EXPECT_NE(RendezvousPrompt(keys), prompt);
}

}  // namespace
}  // namespace cairn
