// RandomSequences: random calls against a SequenceTable beside a plain model of what must come of
// them: each sequence as a list of tokens and one length a layer and slice.
//
// The model knows nothing of pages, sharing or reservations: what it says is compared with the
// bytes that a kernel would read. Steps that the rules refuse are tried too, and must be refused
// with the right code and without a trace.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/cache_node/decode/sequence/seal_world.h"

namespace cairn::node {

class RandomSequences {
 public:
  explicit RandomSequences(uint64_t seed);

  void Step();
  // Every sequence holds its own tokens, and the audits agree.
  void CheckAll();
  // All ends: by closing, and what is left by being idle.
  void End();

  // What happened, so that a test can say that it was enough.
  std::map<std::string, uint64_t> happened;

 private:
  static constexpr uint32_t kBlockTokens = SequenceWorld::kBlockTokens;
  static constexpr size_t kSequencesMax = 24;

  // Group 0: [slice][layer]; the draft group: [slice].
  struct Lengths {
    std::array<std::array<uint64_t, 2>, 2> main{};
    std::array<uint64_t, 2> draft{};
  };
  struct Model {
    std::string tenant;
    TestPrompt prompt;
    uint64_t first = 0;
    uint64_t covered = 0;
    uint64_t capacity = 0;
    std::vector<uint32_t> tokens;  // From `covered` on, as far as any layer got.
    Lengths lengths;
    uint64_t released = 0;  // Positions below were given back.
    bool doomed = false;    // A block under it was removed, or its namespace retired.
  };
  using Models = std::map<SequenceId, Model>;

  static bool Is(const absl::Status& status, absl::StatusCode code) {
    return status.code() == code;
  }
  uint64_t Random(uint64_t below) { return random_() % below; }
  bool Chance(uint32_t percent) { return Random(100) < percent; }
  Models::iterator Any();
  TestPrompt AnyPrompt();
  static uint64_t LengthOf(const Model& model);
  static uint64_t EndOf(const Model& model);

  void Open();
  void AppendSome();
  void AppendTo(Models::iterator it, const SequenceWorld::Where& where, uint64_t rows);
  void AppendBad();
  void Fork();
  void Truncate();
  void Release();
  void Close();
  void LetTimePass();
  void RemoveBlocks();
  void Retire();
  void Evict();
  void Crowd();
  void Seal();
  void CheckSealed(const SealTask& task);
  void Check(Models::iterator it);
  // Notes the end of doomed ones as they are met.
  bool StillThere(Models::iterator it);

  SealWorld w_;
  std::mt19937_64 random_;
  Models models_;
  std::vector<SealTask> sealing_;
  std::vector<BlockPin> crowd_;
  uint32_t fresh_ = 1000;  // Of prompts that nobody had.
};

}  // namespace cairn::node
