// The identity goldens (tests/vectors/identity.json) as the product's own types.
//
// Load() reads and converts everything at once and aborts with the place in the file when something
// is not there: a golden that cannot be read is a broken test, not a result. Immutable afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes16.h"
#include "common/identity/extra.h"
#include "common/identity/fingerprint.h"
#include "common/identity/key_chain.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"

namespace cairn::testing {

struct RegionVector {
  Scope scope;
  std::vector<uint32_t> tokens;
};

struct KeyVector {
  std::string name;
  Namespace name_space;
  std::vector<RegionVector> regions;
  ExtrasByBlock extras;
  Fingerprint fingerprint;
  std::vector<BlockKey> keys;

  // The regions as key_chain.h takes them; they point into this object.
  std::vector<Region> Prompt() const;
};

struct ExternalVector {
  std::string id;
  BlockKey key;
};

struct ExternalVectors {
  Namespace name_space;
  BlockKey root;  // The 16 bytes of the public scope.
  std::vector<ExternalVector> cases;
  std::vector<std::string> first_region_ids;
  Scope second_scope;
  ExternalVector second_region;
};

struct PayloadVector {
  std::string name;
  Layout layout;
  uint32_t group = 0;
  uint32_t slices = 0;
  uint64_t segment_bytes = 0;
  uint64_t part_bytes = 0;
  BlockKey digest_key;
  uint32_t digest_slice = 0;
  std::vector<std::string> sample_segments;
  std::vector<uint64_t> sample_digests;
  uint64_t sample_part_digest = 0;
};

struct DigestVector {
  BlockKey key;
  SegmentId id;
  std::string data;
  uint64_t digest = 0;
};

struct FeedVector {
  std::vector<BlockKey> keys;
  size_t count = 0;
  uint64_t sum = 0;
};

struct IdentityVectors {
  std::vector<KeyVector> keys;
  ExternalVectors external;
  std::vector<PayloadVector> payloads;
  std::vector<DigestVector> digests;
  FeedVector feed;

  static IdentityVectors Load();
  // From another file of the same form.
  static IdentityVectors LoadFrom(const std::string& path);
};

// The scope {"public", "", ""} that most vectors use.
Scope PublicScope();

}  // namespace cairn::testing
