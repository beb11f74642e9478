// DecodeFleet: cache nodes as processes that serve decode, and a model whose prompt a first worker
// computed and put there; second workers decode over them.
//
// Prints the nodes' logs when a test failed.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/cache_node_client.h"
#include "client/cpp/decode/decode_client.h"
#include "client/replay/served/cold_prefill.h"
#include "client/replay/served/served_worker.h"
#include "tests/testing/server_process.h"

namespace cairn::testing {

// A model, its prompt in a layout, and what one worker alone makes of it.
struct DecodeStory {
  DecodeStory(uint64_t seed, uint64_t prompt_tokens, Dtype dtype = Dtype::kFloat32,
              uint32_t slices = 1);

  Prompt MakePrompt() const;

  replay::Transformer model;
  std::vector<uint32_t> tokens;
  NamespaceHandle name_space;
  std::unique_ptr<replay::ColdPrefill> cold;
};

// A second worker, of so many ranks, each with a session of its own.
class DecodeWorker {
 public:
  static constexpr uint64_t kSequence = 7;

  DecodeWorker(const DecodeStory& story, const ClientParts& parts, uint32_t ranks = 1,
               const SessionOptions& options = {});

  // Over these parts at all ranks; a failure of the test when a part cannot be opened.
  void Open(const std::vector<PartWish>& parts);
  // Prefill and greedy decoding; `at` is called before each token with its number. Empty when it
  // failed, which fails the test.
  std::vector<uint32_t> Tell(uint64_t steps, const std::function<void(uint64_t)>& at = nullptr);
  // Logits after the prompt and after each of `tokens`, one a step.
  std::vector<std::vector<float>> Forced(const std::vector<uint32_t>& tokens);

  replay::ServedWorker& worker() { return *worker_; }
  DecodeSession& session(uint32_t rank = 0) { return *ranks_[rank].session; }

 private:
  struct Rank {
    std::unique_ptr<DecodeSession> session;
    std::unique_ptr<replay::ServedAttention> attention;
  };

  const DecodeStory& story_;
  std::vector<Rank> ranks_;
  std::unique_ptr<replay::ServedWorker> worker_;
};

class DecodeFleetTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kSoon = absl::Seconds(30);

  void TearDown() override;

  // Adds nodes with memory for decode; `flags` may say otherwise.
  void AddNodes(size_t count, const std::vector<std::string>& flags = {});
  // Again at the same address, with the same flags.
  void RestartNode(size_t node);
  ServerProcess& process(size_t node) { return *nodes_[node].process; }
  CacheNodeClient& cache(size_t node) { return *nodes_[node].cache; }
  DecodeNode NodeOf(size_t node) { return {nodes_[node].decode.get(), nodes_[node].cache.get()}; }
  // The first worker's blocks, onto a node.
  void Put(const DecodeStory& story, size_t node);
  v1::DescribeResponse Describe(size_t node);
  // Nothing is open, pinned or reserved for decode any more.
  void ExpectAllIsBack(size_t node);

  static PartWish Wish(uint32_t begin, uint32_t end, std::vector<DecodeNode> holders,
                       uint64_t reserve_tokens = 0);

  ClientParts parts() { return parts_.parts(); }

 private:
  struct Node {
    std::vector<std::string> flags;
    std::unique_ptr<ServerProcess> process;
    std::unique_ptr<CacheNodeClient> cache;
    std::unique_ptr<DecodeClient> decode;
  };

  void StartProcess(Node* node, const std::string& listen);

  SystemClientParts parts_;
  std::vector<Node> nodes_;
};

}  // namespace cairn::testing
