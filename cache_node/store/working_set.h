// WorkingSet: what share of the blocks that are asked for an LRU of given sizes would hold, from a
// sample of them, as requests come.
//
// Blocks are sampled by a hash of their key, so a block is in the sample always or never, and the
// order of last uses among sampled blocks says how many bytes were used since a block's last use: a
// hit in each LRU that has so much room. Hits are weighted by the rate of sampling at their time;
// what a few hot blocks add or lack in a sample is known exactly, since all blocks are counted, and
// is put to the hits (the estimate is that of "SHARDS", Waldspurger 2015, with its adjustment).
// What is asked for lately counts more: all counts are halved now and then.
//
// The sample holds at most `samples_max` blocks: over it half of them leave and the rate halves;
// and none that even the largest LRU would have lost. About 70 bytes a sample. Not thread-safe; a
// block that is not sampled costs a comparison, one that is O(log samples), and a halving or a
// renumbering O(samples) once in as many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace cairn::node {

class WorkingSet {
 public:
  struct Options {
    std::vector<uint64_t> sizes_bytes;  // Of the LRUs, ascending.
    size_t samples_max = 16384;
    // Blocks asked for between halvings of all counts. 0: never.
    uint64_t half_life_blocks = uint64_t{1} << 22;
  };

  // Blocks of one prompt, from its deepest to its first: so parents stay younger than children. A
  // prompt may be given in parts, with others' between.
  class Prompt {
   private:
    friend class WorkingSet;
    double own_bytes_ = 0;  // Of its deeper blocks.
  };

  explicit WorkingSet(const Options& options);

  // `key` is a hash already. Says whether the block is sampled.
  bool Ask(uint64_t key, uint64_t bytes, Prompt* prompt);

  // Of all blocks asked for, those that an LRU of that size would have held. 0 before any is.
  double HitRate(size_t size) const;
  size_t size_count() const { return hits_.size(); }

  size_t samples() const { return places_.size(); }
  double rate() const;

 private:
  struct Sample {
    uint64_t key = 0;
    uint64_t bytes = 0;  // 0: nothing is here.
  };

  void Put(uint64_t key, uint64_t bytes);
  void Take(size_t place);
  void DropOldest();
  void HalveSample();
  void Renumber();
  void HalveCounts();
  void AddAt(size_t place, uint64_t bytes);  // Mod 2^64, so that it also takes away.
  uint64_t BytesUpTo(size_t place) const;

  const Options options_;
  int halvings_ = 0;  // A key is sampled when so many of its highest bits are 0.

  std::vector<Sample> samples_;                     // By place: the order of last uses.
  std::vector<uint64_t> sums_;                      // Binary indexed, of the samples' bytes.
  absl::flat_hash_map<uint64_t, uint32_t> places_;  // By key.
  size_t oldest_ = 0;                               // No sample is before it.
  size_t next_ = 0;                                 // The place of the next use.
  uint64_t bytes_ = 0;                              // Of all samples.

  // Decayed.
  double asked_ = 0;
  double weighed_ = 0;        // What the samples stand for of them,
  std::vector<double> hits_;  // and, by size, of those the hits.
  uint64_t asked_since_halving_ = 0;
};

}  // namespace cairn::node
