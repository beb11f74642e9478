// NamespaceDirectory: which namespaces the holders registered or retired.
//
// What one holder said is forgotten at once when its incarnation changes. A namespace that no
// holder speaks of any more is dropped when room is needed. Not thread-safe: under the core's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/identity/fingerprint.h"
#include "common/identity/key_chain.h"
#include "common/identity/namespace.h"
#include "router/ids.h"

namespace cairn::router {

class NamespaceDirectory {
 public:
  NamespaceDirectory(size_t holders, size_t namespaces_max);

  // Makes room for so many holders. REQUIRES: not fewer than now.
  void GrowTo(size_t holders);

  // RESOURCE_EXHAUSTED past the bound; INVALID_ARGUMENT when `block_tokens` is 0, or one of the two
  // is not what another holder said: a fingerprint stands for one layout and one scheme.
  absl::Status Registered(HolderIndex holder, const Fingerprint& fingerprint, uint32_t block_tokens,
                          KeyScheme key_scheme = KeyScheme::kCairn);
  absl::Status Retired(HolderIndex holder, const Fingerprint& fingerprint);
  // All that the holder said.
  void Forget(HolderIndex holder);

  // Tokens in a block; nothing when no holder registered the namespace.
  std::optional<uint32_t> BlockTokens(const Fingerprint& fingerprint) const;
  // How keys are made of its tokens; nothing as above.
  std::optional<KeyRules> RulesOf(const Fingerprint& fingerprint) const;
  bool RetiredAt(HolderIndex holder, const Fingerprint& fingerprint) const;

 private:
  struct Word {
    HolderIndex holder = 0;
    bool retired = false;
    uint32_t generation = 0;  // Of the holder; an older one's word is void.
  };
  struct Entry {
    uint32_t block_tokens = 0;  // 0: only ever heard of as retired.
    KeyScheme key_scheme = KeyScheme::kCairn;
    absl::InlinedVector<Word, 2> words;
  };

  // The entry, when a holder's word that it is registered counts; else null.
  const Entry* FindRegistered(const Fingerprint& fingerprint) const;
  bool Counts(const Word& word) const { return word.generation == generations_[word.holder]; }
  Entry* FindOrMake(const Fingerprint& fingerprint);
  void Say(HolderIndex holder, bool retired, Entry* entry);
  void DropForgotten();

  const size_t namespaces_max_;
  std::vector<uint32_t> generations_;
  absl::flat_hash_map<Fingerprint, Entry> entries_;
};

}  // namespace cairn::router
