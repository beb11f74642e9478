// DepartedClients: who is known to have memory of connections that are over, and until when.
#include "cache_node/local/departed_clients.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace cairn::node {
namespace {

LocalConnectionId Id(uint64_t number) {
  return *LocalConnectionId::FromBytes(absl::StrCat(absl::Hex(number, absl::kZeroPad16)));
}

class DepartedClientsTest : public ::testing::Test {
 protected:
  void Join(uint64_t key, absl::string_view tenant = "a") { clients_.Joined(key, Id(key), tenant); }
  // Whether it is still said to have memory.
  bool Leave(uint64_t key) { return clients_.Left(key, /*borrower=*/key + 100, nullptr); }

  DepartedClients clients_;
};

TEST_F(DepartedClientsTest, AConnectionThatIsOverIsKnownUntilItsClientSpeaks) {
  Join(1);
  EXPECT_TRUE(Leave(1));
  EXPECT_EQ(clients_.Returned(Id(2)).borrower, std::nullopt);
  EXPECT_EQ(clients_.Returned(Id(1)).borrower, 101u);
  EXPECT_EQ(clients_.Returned(Id(1)).borrower, std::nullopt) << "once";
  EXPECT_EQ(clients_.TakeByKey(1), std::nullopt);
}

TEST_F(DepartedClientsTest, AConnectionThatIsOverIsKnownUntilItsProcessEnds) {
  Join(1);
  EXPECT_TRUE(Leave(1));
  EXPECT_EQ(clients_.TakeByKey(1), 101u);
  EXPECT_EQ(clients_.Returned(Id(1)).borrower, std::nullopt);
}

TEST_F(DepartedClientsTest, WhoSpokeBeforeItsConnectionWasOverHasNothing) {
  Join(1);
  const DepartedClients::Said said = clients_.Returned(Id(1));
  EXPECT_EQ(said.borrower, std::nullopt);
  EXPECT_EQ(said.still_connected, 1u);
  EXPECT_FALSE(Leave(1));
  EXPECT_EQ(clients_.TakeByKey(1), std::nullopt);
}

TEST_F(DepartedClientsTest, WhatHadNothingIsForgotten) {
  Join(1);
  clients_.Forget(1);
  EXPECT_EQ(clients_.Returned(Id(1)).still_connected, std::nullopt);
}

TEST_F(DepartedClientsTest, OneTenantIsFullAndOthersAreNot) {
  for (uint64_t key = 0; key < DepartedClients::kPerTenantMax; ++key) {
    EXPECT_FALSE(clients_.full("a"));
    Join(key);
    EXPECT_TRUE(Leave(key));
  }
  EXPECT_TRUE(clients_.full("a"));
  EXPECT_FALSE(clients_.full("b"));
  EXPECT_EQ(clients_.TakeByKey(7), 107u);
  EXPECT_FALSE(clients_.full("a"));
}

TEST_F(DepartedClientsTest, AllTogetherAreBounded) {
  uint64_t key = 0;
  for (char tenant = 'a'; key < DepartedClients::kDepartedMax; ++tenant) {
    for (size_t i = 0; i < DepartedClients::kPerTenantMax; ++i, ++key) {
      Join(key, absl::string_view(&tenant, 1));
      EXPECT_TRUE(Leave(key));
    }
  }
  EXPECT_TRUE(clients_.full("z"));
}

}  // namespace
}  // namespace cairn::node
