// TestStore: a BlockStore over a small pool with a fake clock and seeded ids, and the verbs that
// its tests speak in: prompts, Put, Present, Lease, ...
//
// Blocks hold bytes that follow from their key and segment, so any read can be checked. Verbs that
// cannot fail in a sound store check their own success.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cache_node/store/block_store.h"
#include "cache_node/store/policies/lru_policy.h"
#include "cache_node/tiers/device/device_tier.h"
#include "common/identity/block_hasher.h"
#include "common/identity/key_chain.h"
#include "common/identity/scope.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::node {

// One region's blocks: their scope, tokens and keys, and what they come after.
struct TestPrompt {
  Scope scope;
  std::optional<BlockKey> region_parent;
  std::vector<uint32_t> tokens;
  std::vector<BlockKey> keys;

  const std::string& tenant() const { return scope.tenant; }
};

struct TestStoreOptions {
  BlockStore::Options store = {};
  // 16 memory segments of one 4 KiB page each.
  uint64_t pool_bytes = 16 * 4096;
  const BlockHasher* hasher = nullptr;
  std::unique_ptr<EvictionPolicyFactory> policies = nullptr;
  DurableLedger* ledger = nullptr;  // Of a disk tier.
  DeviceTier* device = nullptr;     // Outlives the store.
};

class TestStore {
 public:
  static constexpr uint32_t kBlockTokens = 4;

  explicit TestStore(TestStoreOptions options = {});

  // Opaque blocks of one segment. Different models are different namespaces of the same shape.
  static Namespace Shape(uint64_t block_bytes, const std::string& model = "model");
  // `layers` segments a part, `slices` parts, and an optional group of one layer where asked for.
  static Namespace ManySegments(uint32_t layers, uint32_t slices, bool optional_group);
  Fingerprint Register(const Namespace& fields, const std::string& tenant = "t",
                       const std::string& name = "");
  // One that the store knows already, as after a restart.
  void Know(const Fingerprint& fingerprint);
  // Default namespace of what follows.
  void Use(const Fingerprint& fingerprint) { fingerprint_ = fingerprint; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

  // --- Prompts ---
  TestPrompt Prompt(const std::string& tenant, uint32_t seed, size_t blocks,
                    const std::string& salt = "");
  // The first `keep` blocks of `prompt`, then others.
  TestPrompt Branch(const TestPrompt& prompt, size_t keep, uint32_t seed, size_t blocks);
  // A second region after all of `first`.
  TestPrompt After(const TestPrompt& first, const std::string& tenant, uint32_t seed,
                   size_t blocks);

  // --- Writes ---
  // Wish of what follows.
  Retention retention;
  Provenance provenance;
  int64_t stays_until_unix_ms = 0;
  ReserveQuery Plan(const TestPrompt& prompt, size_t from = 0, size_t count = SIZE_MAX);
  absl::StatusOr<ReserveAnswer> Reserve(const TestPrompt& prompt, size_t from = 0,
                                        size_t count = SIZE_MAX);
  // The piece that holds one part's layers [layer, layer + layers) whole, with right digests.
  WritePiece Piece(const BlockKey& key, uint32_t block, const SegmentId& first, uint32_t layers);
  std::vector<uint8_t> Bytes(const BlockKey& key, const SegmentId& first, uint32_t layers);
  absl::Status Write(const std::string& tenant, const TokenId& token, const BlockKey& key,
                     uint32_t block, const SegmentId& first, uint32_t layers, uint64_t writer = 1);
  // All segments of all groups of one block.
  absl::Status WriteBlock(const std::string& tenant, const TokenId& token, const BlockKey& key,
                          uint32_t block);
  std::vector<SegmentRun> RunsOf(const BlockKey& key, uint32_t block);
  absl::StatusOr<CommitAnswer> CommitBlock(const std::string& tenant, const TokenId& token,
                                           const BlockKey& key, uint32_t block);
  // Reserves, writes and commits what is not there; answers how many blocks became present.
  size_t Put(const TestPrompt& prompt);

  // --- Reads ---
  LookupAnswer Lookup(const std::string& tenant, const TestPrompt& prompt, bool touch = false);
  uint32_t Present(const TestPrompt& prompt) { return PresentFor(prompt.tenant(), prompt); }
  uint32_t PresentFor(const std::string& tenant, const TestPrompt& prompt);
  std::vector<BlockState> States(const TestPrompt& prompt);
  LookupAnswer Lease(const TestPrompt& prompt, uint32_t readers = 1,
                     absl::Duration ttl = absl::Seconds(10));
  BlockPin Pin(const std::string& tenant, const BlockKey& key,
               const std::optional<LeaseId>& lease = std::nullopt);
  // All committed segments under the pin are those of the key.
  bool Intact(const BlockPin& pin, const BlockKey& key);

  // --- Time ---
  void Advance(absl::Duration by);
  // Everything that has an expiry has expired.
  void AdvancePastEverything();

  // No pin, lease, token or reservation is left, and the audit agrees.
  absl::Status Quiet();
  uint64_t UsedBlocks(uint64_t block_bytes) {
    return store->Status().host_used_bytes / block_bytes;
  }

  testing::FakeClock clock;
  GuardedTime time;
  testing::SeededRandom random;
  StoreCounters counters;
  std::atomic<uint64_t> settled_signals{0};
  // Called with each of them, outside of the store's lock: what happens between two steps of a
  // call.
  std::function<void()> on_settled;
  std::atomic<uint64_t> feed_signals{0};
  std::atomic<uint64_t> spill_signals{0};
  std::atomic<uint64_t> load_signals{0};
  std::atomic<uint64_t> upload_signals{0};
  std::atomic<uint64_t> device_load_signals{0};
  std::unique_ptr<BlockStore> store;

 private:
  KeyRules Rules() const;
  const PayloadMap& Map() const { return *maps_.at(fingerprint_); }

  Sha256BlockHasher sha_;
  const BlockHasher* hasher_;
  Fingerprint fingerprint_;
  std::map<Fingerprint, const PayloadMap*> maps_;  // Good also after a retirement.
};

}  // namespace cairn::node
