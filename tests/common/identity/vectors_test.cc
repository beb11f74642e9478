// Every case of the goldens (tests/vectors/identity.json) against the product: what a script
// written apart from it computed must come out, bit for bit.
#include <gmock/gmock.h>

#include "common/base/hex.h"
#include "common/identity/segment_digest.h"
#include "tests/testing/identity_vectors.h"

namespace cairn {
namespace {

using testing::DigestVector;
using testing::IdentityVectors;
using testing::KeyVector;
using testing::PayloadVector;

absl::Span<const uint8_t> Bytes(const std::string& data) {
  return {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
}

TEST(VectorsTest, FileHasEveryKindOfCase) {
  const IdentityVectors vectors = IdentityVectors::Load();
  EXPECT_EQ(vectors.keys.size(), 20u);
  EXPECT_EQ(vectors.external.cases.size(), 3u);
  EXPECT_EQ(vectors.payloads.size(), 10u);
  EXPECT_EQ(vectors.digests.size(), 6u);
  EXPECT_EQ(vectors.feed.count, 5u);
}

TEST(VectorsTest, FingerprintsAgree) {
  for (const KeyVector& vector : IdentityVectors::Load().keys) {
    const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(vector.name_space);
    ASSERT_TRUE(fingerprint.ok()) << vector.name << ": " << fingerprint.status();
    EXPECT_EQ(ToHex(fingerprint->view()), ToHex(vector.fingerprint.view())) << vector.name;
  }
}

TEST(VectorsTest, KeysOfWholePromptsAgree) {
  for (const KeyVector& vector : IdentityVectors::Load().keys) {
    const absl::StatusOr<KeyRules> rules = KeyRulesOf(vector.name_space);
    ASSERT_TRUE(rules.ok()) << vector.name;
    const auto keys = PromptKeys(Sha256BlockHasher(), *rules, vector.Prompt(), vector.extras);
    ASSERT_TRUE(keys.ok()) << vector.name << ": " << keys.status();
    EXPECT_EQ(*keys, vector.keys) << vector.name;
  }
}

TEST(VectorsTest, ExternalKeysAgree) {
  const testing::ExternalVectors external = IdentityVectors::Load().external;
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(external.name_space);
  ASSERT_TRUE(rules.ok()) << rules.status();
  const Sha256BlockHasher hasher;
  KeyChain chain(&hasher, *rules);
  ASSERT_TRUE(chain.Enter(testing::PublicScope()).ok());
  EXPECT_EQ(chain.root(), external.root);
  for (const testing::ExternalVector& one : external.cases) {
    const absl::StatusOr<BlockKey> key = chain.NextExternal(one.id);
    ASSERT_TRUE(key.ok()) << key.status();
    EXPECT_EQ(*key, one.key);
  }
}

TEST(VectorsTest, SecondExternalRegionAgrees) {
  const testing::ExternalVectors external = IdentityVectors::Load().external;
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(external.name_space);
  ASSERT_TRUE(rules.ok()) << rules.status();
  const std::vector<std::string> second_ids = {external.second_region.id};
  const Region regions[] = {
      {.scope = testing::PublicScope(), .tokens = {}, .external_ids = external.first_region_ids},
      {.scope = external.second_scope, .tokens = {}, .external_ids = second_ids}};
  const auto keys = PromptKeys(Sha256BlockHasher(), *rules, regions, {});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->back(), external.second_region.key);
}

TEST(VectorsTest, PayloadSizesAgree) {
  for (const PayloadVector& vector : IdentityVectors::Load().payloads) {
    ASSERT_TRUE(ValidateLayout(vector.layout).ok())
        << vector.name << ": " << ValidateLayout(vector.layout);
    const Group& group = vector.layout.groups[vector.group];
    EXPECT_EQ(SlicesOf(vector.layout, group), vector.slices) << vector.name;
    EXPECT_EQ(SegmentBytes(vector.layout, group), vector.segment_bytes) << vector.name;
    EXPECT_EQ(PartBytes(vector.layout, group), vector.part_bytes) << vector.name;
  }
}

TEST(VectorsTest, SampleSegmentAndPartDigestsAgree) {
  for (const PayloadVector& vector : IdentityVectors::Load().payloads) {
    std::vector<uint64_t> digests;
    for (uint32_t layer = 0; layer < vector.sample_segments.size(); ++layer) {
      const SegmentId id{vector.group, vector.digest_slice, layer};
      digests.push_back(SegmentDigest(vector.digest_key, id, Bytes(vector.sample_segments[layer])));
    }
    EXPECT_EQ(digests, vector.sample_digests) << vector.name;
    EXPECT_EQ(PartDigest(digests), vector.sample_part_digest) << vector.name;
  }
}

TEST(VectorsTest, DigestsAgree) {
  for (const DigestVector& vector : IdentityVectors::Load().digests) {
    EXPECT_EQ(SegmentDigest(vector.key, vector.id, Bytes(vector.data)), vector.digest);
  }
}

TEST(VectorsTest, FeedSumAgrees) {
  const testing::FeedVector feed = IdentityVectors::Load().feed;
  uint64_t sum = 0;
  for (const BlockKey& key : feed.keys) sum += FeedKeyDigest(key);
  EXPECT_EQ(feed.keys.size(), feed.count);
  EXPECT_EQ(sum, feed.sum);
}

}  // namespace
}  // namespace cairn
