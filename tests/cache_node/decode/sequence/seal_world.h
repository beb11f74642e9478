// SealWorld, SealTest: a SequenceWorld with a mover that publishes what its sequences have full,
// and the fixture of the stories about that.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "cache_node/decode/sequence/sequence_sealer.h"
#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {

class SealWorld : public SequenceWorld {
 public:
  using SequenceWorld::SequenceWorld;

  std::vector<SealOutcome> SealAll() {
    std::vector<SealOutcome> outcomes;
    for (std::vector<SealTask> tasks = table->TakeSeals(8); !tasks.empty();
         tasks = table->TakeSeals(8)) {
      for (const SealTask& task : tasks) {
        outcomes.push_back(sealer.Seal(task));
        table->FinishSeal(task.serial, outcomes.back());
      }
      CAIRN_CHECK_OK(Audit());
    }
    return outcomes;
  }
  // The last `blocks` blocks' tokens.
  static std::vector<uint32_t> Tail(const TestPrompt& prompt, size_t blocks) {
    return {prompt.tokens.end() - static_cast<ptrdiff_t>(blocks * kBlockTokens),
            prompt.tokens.end()};
  }
  uint64_t Sealed(const SequenceId& id) { return (*table->Find("t", id))->sealed_blocks(); }
  uint64_t CountOf(SealOutcome outcome) {
    return table->Numbers().seals[static_cast<size_t>(outcome)];
  }
  void End() {
    table->CloseAll();
    const absl::Status quiet = Quiet();
    EXPECT_TRUE(quiet.ok()) << quiet;
  }

  SequenceSealer sealer{store.store.get(), &hasher, &store.clock};
};

// A prompt of two blocks that is there, and what sequences append to it.
class SealTest : public ::testing::Test {
 protected:
  SealTest() {
    prompt_ = w_.store.Prompt("t", 1, 2);
    CAIRN_CHECK(w_.store.Put(prompt_) == 2);
    longer_ = w_.store.Branch(prompt_, 2, 9, 2);
    more_ = SealWorld::Tail(longer_, 2);
  }
  ~SealTest() override { w_.End(); }

  std::vector<uint32_t> More(size_t from, size_t count) const {
    return {more_.begin() + static_cast<ptrdiff_t>(from),
            more_.begin() + static_cast<ptrdiff_t>(from + count)};
  }

  SealWorld w_;
  TestPrompt prompt_;
  TestPrompt longer_;           // As a worker with the same tokens would write it.
  std::vector<uint32_t> more_;  // What it has behind the prompt.
};

}  // namespace cairn::node
