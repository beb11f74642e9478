// RandomSequences: what happens around sequences: time, removals, a store that is full, seals.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/random_sequences.h"

namespace cairn::node {

// Clients that died: some sequences are not asked for until their idle time is over.
void RandomSequences::LetTimePass() {
  std::vector<SequenceId> used;
  for (auto& [id, model] : models_) {
    if (Chance(85)) used.push_back(id);
  }
  const auto use = [&] {
    for (const SequenceId& id : used) {
      const auto it = models_.find(id);
      if (it != models_.end()) StillThere(it);
    }
  };
  for (int i = 0; i < 2; ++i) {
    w_.store.Advance(absl::Seconds(40));
    use();
    w_.table->Tick();
  }
  for (auto it = models_.begin(); it != models_.end();) {
    if (std::find(used.begin(), used.end(), it->first) != used.end()) {
      ++it;
      continue;
    }
    EXPECT_FALSE(w_.table->Find(it->second.tenant, it->first).ok());
    it = models_.erase(it);
    ++happened["died"];
  }
}

void RandomSequences::RemoveBlocks() {
  const auto any = Any();
  if (any == models_.end()) return;
  const TestPrompt prompt = any->second.prompt;
  const size_t block = Random(prompt.keys.size());
  const auto removed =
      w_.store.store->Delete(prompt.tenant(), w_.fingerprint, {prompt.keys[block]});
  ASSERT_TRUE(removed.ok());
  if (!(*removed)[0]) return;
  for (auto& [id, model] : models_) {
    const uint64_t position = block * kBlockTokens;
    const bool same = model.prompt.keys[0] == prompt.keys[0];
    if (same && position >= std::max(model.first, model.released) && position < model.covered) {
      model.doomed = true;
    }
  }
  ++happened["blocks removed"];
}

void RandomSequences::Retire() {
  ASSERT_TRUE(w_.store.store->RetireNamespace(w_.fingerprint).ok());
  if (Chance(50)) {
    const auto refused = w_.TryOpen(AnyPrompt(), {.tenant = "t"});
    EXPECT_TRUE(Is(refused.status(), absl::StatusCode::kFailedPrecondition)) << refused.status();
  }
  w_.store.Register(w_.fields);
  for (auto& [id, model] : models_) model.doomed = true;
  ++happened["retirements"];
}

void RandomSequences::Evict() {
  const std::string tenants[] = {"t", "u", "x"};
  for (int i = 0; i < 12; ++i) {
    w_.store.Put(w_.store.Prompt(tenants[Random(3)], ++fresh_, 1 + Random(4)));
  }
}

// A tenant's readers hold all that fits, so that nothing of it can make room; or let it go.
void RandomSequences::Crowd() {
  if (!crowd_.empty()) {
    crowd_.clear();
    return;
  }
  for (int i = 0; i < 100; ++i) {
    const TestPrompt prompt = w_.store.Prompt(Chance(50) ? "t" : "u", ++fresh_, 1);
    if (w_.store.Put(prompt) == 1) crowd_.push_back(w_.store.Pin(prompt.tenant(), prompt.keys[0]));
  }
  ++happened["crowds"];
}

void RandomSequences::Seal() {
  for (SealTask& task : w_.table->TakeSeals(1 + Random(3))) sealing_.push_back(std::move(task));
  while (!sealing_.empty() && Chance(70)) {
    std::swap(sealing_[Random(sealing_.size())], sealing_.back());
    const SealTask& task = sealing_.back();
    const SealOutcome outcome = w_.sealer.Seal(task);
    if (outcome == SealOutcome::kSealed) CheckSealed(task);
    w_.table->FinishSeal(task.serial, outcome);
    ++happened["seals of outcome " + std::to_string(static_cast<int>(outcome))];
    sealing_.pop_back();
  }
}

// A worker that asks for these tokens gets their rows.
void RandomSequences::CheckSealed(const SealTask& task) {
  const BlockPin pin = w_.store.Pin(task.tenant, task.key);
  ASSERT_TRUE(pin);
  for (const auto& [id, model] : models_) {
    // The sequence that it came from, if it still has these tokens.
    BlockKey before = EnterScope(w_.fingerprint.root(), model.prompt.scope);
    std::vector<uint32_t> tokens = model.prompt.tokens;
    tokens.resize(std::min<size_t>(tokens.size(), model.covered));
    tokens.insert(tokens.end(), model.tokens.begin(), model.tokens.end());
    for (uint64_t at = 0; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
      const std::vector<uint32_t> block(tokens.begin() + static_cast<ptrdiff_t>(at),
                                        tokens.begin() + static_cast<ptrdiff_t>(at + kBlockTokens));
      before = w_.hasher.Block(before, block, "");
      if (before != task.key || model.prompt.tenant() != task.tenant) continue;
      EXPECT_TRUE(w_.BlockHolds(reinterpret_cast<const std::byte*>(pin.bytes().data()), at, block));
      ++happened["sealed bytes compared"];
      return;
    }
  }
}

}  // namespace cairn::node
