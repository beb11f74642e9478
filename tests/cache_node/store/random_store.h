// RandomStore: random calls on a small store, with a model of what may be seen.
//
// The model knows which blocks were committed and what they hold. A cache may forget any block at
// any time, so the model bounds what is visible from above (nothing that was not committed, nothing
// of another tenant, no other bytes, nothing deleted), and from below where something is held (a
// leased block can be read until its lease is over).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cache_node/store/test_store.h"

namespace cairn::node {

class RandomStore {
 public:
  explicit RandomStore(uint64_t seed);

  // One random call, checked against the model.
  void Step();
  // Lets go of everything that clients hold, as if all had died.
  void DropClients();

  TestStore& store() { return t_; }
  uint64_t committed() const { return committed_; }
  uint64_t reads_checked() const { return reads_checked_; }
  uint64_t stayed() const { return stayed_; }

 private:
  struct Writer {
    Fingerprint fingerprint;
    TestPrompt prompt;
    size_t from = 0;
    std::vector<ReserveOutcome> outcomes;
    TokenId token;
    uint32_t next = 0;
    std::vector<std::pair<uint32_t, WriteClaim>> claims;
  };
  struct Reader {
    Fingerprint fingerprint;
    TestPrompt prompt;
    LeaseId lease;
    uint32_t leased = 0;
    uint32_t readers = 1;
    absl::Time certain_until;  // In guarded time: before it, the lease cannot have expired.
  };
  struct HeldPin {
    Fingerprint fingerprint;
    BlockKey key;
    BlockPin pin;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  TestPrompt AnyPrompt();
  void UseAny();
  void Reserve();
  void WriteSome();
  void Commit(Writer* writer, uint32_t index);
  void EndWriter();
  void LookUp();
  void Lease();
  void ReadLeased();
  void EndLease();
  void PinOrDrop();
  void StayOrNot();
  void Remove();
  void RetireOne();
  void Report();
  void Forget(const Fingerprint& fingerprint, const BlockKey& key);
  bool MayBeVisible(const std::string& tenant, const TestPrompt& prompt, const BlockKey& key);

  std::mt19937_64 random_;
  TestStore t_;
  std::vector<Namespace> shapes_;
  std::vector<Fingerprint> fingerprints_;
  std::deque<Writer> writers_;
  std::deque<Reader> readers_;
  std::deque<HeldPin> pins_;
  // (namespace, tenant, key): committed and not removed by anyone's will since.
  std::set<std::tuple<Fingerprint, std::string, BlockKey>> visible_;
  uint64_t committed_ = 0;
  uint64_t reads_checked_ = 0;
  uint64_t stayed_ = 0;
};

}  // namespace cairn::node
