// Method: a fence, then blocks written before and after it, of the same and of other scopes.
#include "cache_node/pull/pull_fences.h"

#include <gtest/gtest.h>

#include "common/base/check.h"

namespace cairn::node {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const int64_t kBefore = absl::ToUnixMillis(kNow - absl::Minutes(1));
const int64_t kAfter = absl::ToUnixMillis(kNow + absl::Minutes(1));

template <typename Id>
Id Of(uint8_t byte) {
  Id id;
  id.bytes[0] = byte;
  return id;
}

const PullTarget kTarget{"t", Of<Fingerprint>(1)};

TEST(PullFences, ARetirementIsOfAllTenants) {
  PullFences fences;
  fences.Retired(kTarget.fingerprint, kNow);
  const BlockKey scope = Of<BlockKey>(1);
  EXPECT_TRUE(fences.Refuses(kTarget, scope, {1, kBefore}));
  EXPECT_FALSE(fences.Refuses(kTarget, scope, {1, kAfter}));
  EXPECT_TRUE(fences.Refuses({"u", kTarget.fingerprint}, scope, {1, kBefore}));
  EXPECT_FALSE(fences.Refuses({"t", Of<Fingerprint>(2)}, scope, {1, kBefore}));
}

TEST(PullFences, AClearIsOfOneScopeOfOneTenant) {
  PullFences fences;
  fences.Cleared(kTarget.fingerprint, "t", Of<BlockKey>(1), kNow);
  EXPECT_TRUE(fences.Refuses(kTarget, Of<BlockKey>(1), {1, kBefore}));
  EXPECT_FALSE(fences.Refuses(kTarget, Of<BlockKey>(2), {1, kBefore}));
  EXPECT_FALSE(fences.Refuses({"u", kTarget.fingerprint}, Of<BlockKey>(1), {1, kBefore}));
}

TEST(PullFences, APurgeIsOfOneWriterSinceATime) {
  PullFences fences;
  fences.Purged(7, kBefore, kNow);
  EXPECT_TRUE(fences.Refuses(kTarget, BlockKey(), {7, kBefore}));
  EXPECT_FALSE(fences.Refuses(kTarget, BlockKey(), {7, kBefore - 60'000}));
  EXPECT_FALSE(fences.Refuses(kTarget, BlockKey(), {8, kBefore}));
  EXPECT_FALSE(fences.Refuses(kTarget, BlockKey(), {7, kAfter}));
}

TEST(PullFences, ClocksThatAreApartRefuseTooMuchRatherThanTooLittle) {
  PullFences fences;
  fences.Retired(kTarget.fingerprint, kNow);
  EXPECT_TRUE(fences.Refuses(kTarget, BlockKey(),
                             {1, absl::ToUnixMillis(kNow + PullFences::kClocksApart)}));
}

TEST(PullFences, WhatIsForgottenRefusesAllThatIsAsOld) {
  PullFences fences;
  fences.Retired(Of<Fingerprint>(9), kNow);
  const uint64_t generation = fences.generation();
  EXPECT_FALSE(fences.Refuses(kTarget, BlockKey(), {1, kBefore}));
  for (size_t i = 0; i < PullFences::kFencesMax; ++i) {
    fences.Purged(1000 + i, 0, kNow + absl::Hours(1));
  }
  EXPECT_GT(fences.generation(), generation);
  EXPECT_TRUE(fences.Refuses(kTarget, BlockKey(), {1, kBefore}));
  EXPECT_FALSE(fences.Refuses(kTarget, BlockKey(), {1, kAfter}));
}

}  // namespace
}  // namespace cairn::node
