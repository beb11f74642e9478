// Sixteen clients with connections of their own put the same key at once, in the real node.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr size_t kWriters = 16;

class OneWriterTest : public NodeTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB"}));
    for (size_t i = 0; i < kWriters; ++i) clients_.push_back(NewClient());
    name_space_ = std::make_unique<NamespaceHandle>(Register(**clients_[0], SmallBlocks()));
  }

  // Runs `body` for each client on a thread of its own, begun together.
  template <typename Body>
  void Together(Body body) {
    auto* const barrier = new absl::Barrier(kWriters);  // Its last one out deletes it.
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        if (barrier->Block()) delete barrier;
        body(i, **clients_[i]);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void ExpectIntact(const NumberedPrompt& prompt) {
    const CheckedRead read = GetAndCompare(**clients_[0], *name_space_, prompt.keys());
    EXPECT_TRUE(read.result.AllGood()) << read.result.status;
    EXPECT_EQ(read.wrong, 0u);
  }

  std::vector<std::unique_ptr<TestClient>> clients_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

TEST_F(OneWriterTest, OneIsReservedAndTheOthersSeeItInProgress) {
  const NumberedPrompt prompt(**clients_[0], *name_space_, 1, 1);
  std::vector<std::unique_ptr<WriteSession>> sessions(kWriters);
  Together([&](size_t i, CacheNodeClient& client) {
    auto session = client.Reserve(*name_space_, prompt.prompt(), 0, 1);
    ASSERT_TRUE(session.ok()) << session.status();
    sessions[i] = std::make_unique<WriteSession>(*std::move(session));
  });
  WriteSession* winner = nullptr;
  size_t in_progress = 0;
  for (const auto& session : sessions) {
    ASSERT_EQ(session->answers().size(), 1u);
    if (session->token()) winner = session.get();
    in_progress += session->answers()[0].outcome() == v1::RESERVE_OUTCOME_IN_PROGRESS ? 1 : 0;
  }
  EXPECT_EQ(in_progress, kWriters - 1);
  ASSERT_NE(winner, nullptr);
  ASSERT_TRUE(winner->WriteAll(PayloadOf(*name_space_, prompt.keys())).ok());
  const auto commit = winner->Commit();
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_TRUE(commit->complete);
  ExpectIntact(prompt);
}

TEST_F(OneWriterTest, EachKeyOfManyRacesIsWrittenOnceAndIntact) {
  for (uint32_t number = 0; number < 20; ++number) {
    const NumberedPrompt prompt(**clients_[0], *name_space_, number, 2);
    std::atomic<size_t> written{0};
    Together([&](size_t, CacheNodeClient& client) {
      const auto put = PutPrompt(client, *name_space_, prompt.prompt());
      ASSERT_TRUE(put.ok()) << put.status();
      EXPECT_TRUE(put->complete());
      written += put->blocks_written;
    });
    EXPECT_EQ(written, 2u) << "prompt " << number;
    ExpectIntact(prompt);
  }
  EXPECT_TRUE(AwaitDescribe(IsIdle));
}

}  // namespace
}  // namespace cairn::testing
