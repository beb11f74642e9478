// Whole traces through loader and oracles, to the exact block. With CAIRN_TRACE_DIR naming a folder
// of the published traces, those in it, against numbers that a program written apart from this one
// counted; and always a small trace in each format, counted by hand.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "client/replay/cache_oracles.h"
#include "client/replay/open_trace.h"
#include "tests/client/replay/trace_file.h"

namespace cairn::replay {
namespace {

struct Known {
  std::string file;
  uint32_t block_tokens;
  uint64_t lru_blocks;
  uint64_t requests;
  uint64_t empty_requests;
  uint64_t prompt_tokens;
  uint64_t full_blocks;
  uint64_t distinct_blocks;
  uint64_t ideal_hit_blocks;
  uint64_t lru_hit_blocks;
};

const std::vector<Known>& PublishedTraces() {
  static const auto* const traces = new std::vector<Known>{
      {"mooncake_conversation_trace.jsonl.gz", 512, 5859, 12031, 0, 144793823, 276491, 170899,
       105592, 40644},
      {"mooncake_synthetic_trace.jsonl.gz", 512, 5859, 3993, 0, 61194628, 117888, 40148, 77740,
       38368},
      {"agent_tokens_qwen3.jsonl.gz", 16, 1024, 1566, 53, 4195099, 261451, 26224, 235227, 201390},
      {"claude_code_32users.txt.gz", 64, 46875, 49334, 0, 6037445403, 94310647, 3453961, 90856686,
       56724994}};
  return *traces;
}

void ExpectKnown(const std::string& path, const Known& known) {
  SCOPED_TRACE(path);
  auto trace = OpenTrace(path);
  ASSERT_TRUE(trace.ok()) << trace.status();
  CacheOracles oracles(known.block_tokens, known.lru_blocks);
  uint64_t requests = 0;
  while (true) {
    auto request = (*trace)->Next();
    ASSERT_TRUE(request.ok()) << request.status();
    if (!request->has_value()) break;
    ++requests;
    const auto hits = oracles.Observe((*request)->prompt);
    ASSERT_TRUE(hits.ok()) << hits.status();
  }
  EXPECT_EQ(requests, known.requests);
  EXPECT_EQ((*trace)->empty_requests(), known.empty_requests);
  EXPECT_EQ(oracles.prompt_tokens(), known.prompt_tokens);
  EXPECT_EQ(oracles.full_blocks(), known.full_blocks);
  EXPECT_EQ(oracles.distinct_blocks(), known.distinct_blocks);
  EXPECT_EQ(oracles.ideal_hit_blocks(), known.ideal_hit_blocks);
  EXPECT_EQ(oracles.lru_hit_blocks(), known.lru_hit_blocks);
}

TEST(KnownTraces, AreCountedToTheBlock) {
  // An unlimited cache hits 0, 1, 3 and 2 blocks; an LRU of 3 loses block 2, then 8: 0, 1, 2, 1.
  const TraceFile mooncake(
      R"({"timestamp": 0, "input_length": 1536, "output_length": 1, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"timestamp": 0, "input_length": 1100, "output_length": 1, "hash_ids": [0, 8, 9]})"
      "\n"
      R"({"timestamp": 9, "input_length": 1600, "output_length": 1, "hash_ids": [0, 1, 2, 3]})"
      "\n"
      R"({"timestamp": 9, "input_length": 1536, "output_length": 1, "hash_ids": [0, 8, 9]})"
      "\n");
  ExpectKnown(mooncake.path(), {"", 512, 3, 4, 0, 5772, 11, 5, 6, 4});
  const TraceFile normalised("0 192 1 5 1-3\n0 130 1 5 1-2\n1 192 1 6 1-3\n1 260 1 5 1-4\n");
  ExpectKnown(normalised.path(), {"", 64, 100, 4, 0, 774, 12, 7, 5, 5});
  const TraceFile agent(R"({"t":0,"o":1,"ref":-1,"keep":0,"add":[1,2,3,4,5,6,7,8]})"
                        "\n"
                        R"({"t":0,"o":1,"ref":0,"keep":6,"add":[9,9,9]})"
                        "\n"
                        R"({"t":0,"o":1,"ref":0,"keep":0,"add":[]})"
                        "\n"
                        R"({"t":0,"o":1,"ref":1,"keep":8,"add":[5,6,7,8]})"
                        "\n");
  ExpectKnown(agent.path(), {"", 4, 100, 3, 1, 29, 7, 4, 3, 3});

  const char* const folder = std::getenv("CAIRN_TRACE_DIR");
  if (folder == nullptr) return;
  size_t found = 0;
  for (const Known& known : PublishedTraces()) {
    const std::filesystem::path path = std::filesystem::path(folder) / known.file;
    if (!std::filesystem::exists(path)) continue;
    ++found;
    ExpectKnown(path, known);
  }
  EXPECT_GT(found, 0u) << "CAIRN_TRACE_DIR=" << folder << " holds none of the published traces";
}

}  // namespace
}  // namespace cairn::replay
