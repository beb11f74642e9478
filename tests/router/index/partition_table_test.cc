// Pairs of namespace and tenant get numbers up to the bound; retained ones keep theirs.
#include "router/index/partition_table.h"

#include <gmock/gmock.h>

#include "tests/router/numbered_ids.h"

namespace cairn::router {
namespace {

TEST(PartitionTableTest, OnePairHasOneNumberAndOthersAnother) {
  PartitionTable table(8);
  const auto first = table.Intern(NumberedFingerprint(1), "acme");
  EXPECT_EQ(table.Intern(NumberedFingerprint(1), "acme"), first);
  EXPECT_NE(table.Intern(NumberedFingerprint(1), "rival"), first);
  EXPECT_NE(table.Intern(NumberedFingerprint(2), "acme"), first);
  EXPECT_EQ(table.Find(NumberedFingerprint(1), "acme"), first);
  EXPECT_EQ(table.Find(NumberedFingerprint(3), "acme"), std::nullopt);
}

TEST(PartitionTableTest, AtTheBoundUnusedNumbersAreGivenOutAgain) {
  PartitionTable table(2);
  const auto kept = table.Intern(NumberedFingerprint(1), "kept");
  table.Retain(*kept);
  const auto unused = table.Intern(NumberedFingerprint(1), "unused");
  const auto next = table.Intern(NumberedFingerprint(1), "next");
  EXPECT_EQ(next, unused);
  EXPECT_EQ(table.Find(NumberedFingerprint(1), "unused"), std::nullopt);
  EXPECT_EQ(table.Find(NumberedFingerprint(1), "kept"), kept);
  table.Retain(*next);
  EXPECT_EQ(table.Intern(NumberedFingerprint(1), "over"), std::nullopt);
  table.Release(*kept);
  EXPECT_EQ(table.Intern(NumberedFingerprint(1), "over"), kept);
}

}  // namespace
}  // namespace cairn::router
