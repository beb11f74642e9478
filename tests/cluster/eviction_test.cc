// Readers and writers over a working set four times the pool: every byte that is read is compared.
#include <atomic>
#include <iostream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {
namespace {

constexpr uint32_t kPrompts = 256;
constexpr uint32_t kBlocks = 4;  // 64 KiB each: 64 MiB in all, over a pool of 16 MiB.
constexpr int kReaders = 4;
constexpr int kReadsEach = 250;
constexpr int kWriters = 2;

class EvictionTest : public NodeTest {
 protected:
  // Reads random prompts, half of them under a lease, until it has made its reads.
  void Read(uint64_t seed) {
    const auto client = NewClient();
    std::mt19937_64 random(seed);
    for (int i = 0; i < kReadsEach; ++i) {
      const NumberedPrompt prompt(**client, *name_space_, Draw(random), kBlocks);
      LookupOptions lookup;
      lookup.lease_readers = random() % 2 == 0 ? 1 : 0;
      auto answer = (*client)->Lookup(*name_space_, prompt.span(), lookup);
      ASSERT_TRUE(answer.ok()) << answer.status();
      GetOptions get;
      if (answer->lease) get.lease = answer->lease->id();
      const uint32_t leased = answer->prompts[0].blocks_leased;
      const CheckedRead read = GetAndCompare(
          **client, *name_space_,
          absl::MakeSpan(prompt.keys()).subspan(0, answer->lease ? leased : kBlocks), get);
      ASSERT_EQ(read.wrong, 0u) << "prompt, seed " << seed << ": " << read.result.status;
      ASSERT_TRUE(read.result.status.ok()) << read.result.status;
      if (answer->lease) {
        EXPECT_EQ(read.result.usable_prefix, leased) << "a leased block was gone";
      }
      hits_ += read.result.usable_prefix;
      misses_ += kBlocks - read.result.usable_prefix;
    }
  }

  // Puts random prompts until told to stop.
  void Write(uint64_t seed) {
    const auto client = NewClient();
    std::mt19937_64 random(seed);
    while (!stop_) {
      const NumberedPrompt prompt(**client, *name_space_, Draw(random), kBlocks);
      const auto put = PutPrompt(**client, *name_space_, prompt.prompt());
      ASSERT_TRUE(put.ok()) << put.status();
      written_ += put->blocks_written;
    }
  }

  // Low numbers come more often: some prompts are hot.
  static uint32_t Draw(std::mt19937_64& random) {
    const auto a = static_cast<uint32_t>(random() % kPrompts);
    const auto b = static_cast<uint32_t>(random() % kPrompts);
    return std::min(a, b);
  }

  std::unique_ptr<NamespaceHandle> name_space_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
  std::atomic<uint64_t> written_{0};
};

TEST_F(EvictionTest, ReadersUnderPressureGetExactBytesOrAMiss) {
  ASSERT_NO_FATAL_FAILURE(StartNode({"--host-memory=16MiB", "--memory-limit=1GiB"}));
  const auto client = NewClient();
  name_space_ = std::make_unique<NamespaceHandle>(Register(**client, SmallBlocks()));
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) writers.emplace_back([this, i] { Write(1000 + i); });
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) readers.emplace_back([this, i] { Read(i); });
  for (std::thread& thread : readers) thread.join();
  stop_ = true;
  for (std::thread& thread : writers) thread.join();
  std::cout << hits_ << " blocks read and compared, " << misses_ << " misses, " << written_
            << " blocks written\n";
  EXPECT_GT(hits_, 0u);
  EXPECT_GT(misses_, 0u);
  EXPECT_GT(written_, 16u << 20 >> 16) << "the pool never overflowed";
  EXPECT_TRUE(AwaitDescribe(IsIdle));
  EXPECT_LE(Describe().blocks(), 256u);
  EXPECT_EQ(Describe().quarantined(), 0u);
}

}  // namespace
}  // namespace cairn::testing
