// A sound conversation on the local socket, and what seeded changes of single bytes make of it,
// through the fuzz entry: where there is no libFuzzer, and as a first look where there is.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/local_session_fuzz.h"

namespace cairn::testing {
namespace {

std::vector<v1::LocalRequest> SoundConversation() {
  std::vector<v1::LocalRequest> requests(9);
  requests[0].mutable_read()->set_keys(std::string("\0\1\2", 3));
  requests[1].mutable_read()->set_keys("\3");
  requests[1].mutable_read()->set_each(true);
  requests[2].mutable_read()->set_keys(std::string("\0\4\5", 3));  // Two are another tenant's.
  requests[2].mutable_read()->set_each(true);
  requests[3].mutable_read()->set_keys("\3");
  requests[3].mutable_read()->set_lease("L");
  requests[3].mutable_read()->set_hold(true);
  requests[4].mutable_end()->set_lease("L");
  requests[4].mutable_end()->set_usable_blocks(3);
  requests[5].mutable_stage()->set_bytes(8192);
  v1::LocalPut* put = requests[6].mutable_put();
  put->set_token("T");
  for (uint32_t block = 0; block < 2; ++block) {
    v1::LocalPiece* piece = put->add_pieces();
    piece->set_layers(1);
    piece->set_staging_offset(block * 4096);
    piece->mutable_piece()->set_block(block);
    piece->mutable_piece()->set_length(4096);
  }
  requests[7].mutable_unmapped()->add_segments(1);
  requests[8].mutable_read()->set_keys("\1");
  return requests;
}

TEST(LocalSessionReplayTest, ASoundConversationBearsFruitThroughout) {
  const std::vector<v1::LocalRequest> requests = SoundConversation();
  EXPECT_EQ(RunLocalSession(LocalFuzzInput(requests)), requests.size());
}

TEST(LocalSessionReplayTest, ChangedBytesBreakNoPromise) {
  const std::string sound = LocalFuzzInput(SoundConversation());
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string input = sound;
    for (uint32_t change = 0; change <= random() % 4; ++change) {
      input[random() % input.size()] = static_cast<char>(random());
    }
    RunLocalSession(input);
  }
}

TEST(LocalSessionReplayTest, PacketsCutAnywhereBreakNoPromise) {
  const std::string sound = LocalFuzzInput(SoundConversation());
  for (size_t size = 0; size < sound.size(); ++size) RunLocalSession(sound.substr(0, size));
}

TEST(LocalSessionReplayTest, RequestsInAnyOrderBreakNoPromise) {
  std::vector<v1::LocalRequest> requests = SoundConversation();
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(requests.begin(), requests.end(), random);
    RunLocalSession(LocalFuzzInput(requests));
  }
}

}  // namespace
}  // namespace cairn::testing
