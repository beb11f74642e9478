// A whole node whose tenants have limits: what calls are told, and what a changed quota file does.
#include <gmock/gmock.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_status.h"
#include "common/rpc/status_mapping.h"
#include "tests/cache_node/service/node_fixture.h"

namespace cairn::node {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class TenantLimitsTest : public NodeFixture {
 protected:
  TenantLimitsTest()
      : path_(absl::StrCat(::testing::TempDir(), "/cairn_quotas_",
                           ::testing::UnitTest::GetInstance()->current_test_info()->name())) {}

  void WriteQuotas(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    ASSERT_EQ(std::rename((path_ + ".new").c_str(), path_.c_str()), 0);
  }
  void StartWith(const std::string& quotas) {
    WriteQuotas(quotas);
    NodeConfig config = SmallConfig();
    config.quota_file = path_;
    StartNode(config);
  }
  grpc::Status Lookup(const TestPrompt& prompt) {
    v1::LookupResponse response;
    return stub_->Lookup(Context().get(), LookupRequestOf(prompt), &response);
  }
  // How the reservation ended: with the first block that was refused, or the last.
  v1::ReserveOutcome EndOf(const TestPrompt& prompt) {
    v1::ReserveResponse response;
    const grpc::Status status =
        stub_->Reserve(Context().get(), ReserveRequestOf(prompt), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    v1::ReserveOutcome end = v1::RESERVE_OUTCOME_UNSPECIFIED;
    for (const v1::ReserveAnswer& answer : response.answers()) {
      if (answer.outcome() != v1::RESERVE_OUTCOME_UNSPECIFIED) end = answer.outcome();
    }
    return end;
  }

  // What came of pinning it, or (0) of ending that, by block.
  std::vector<int> Pin(const TestPrompt& prompt, uint64_t pin_ms) {
    v1::PinBlocksRequest request;
    v1::PinBlocksResponse response;
    request.set_fingerprint(fingerprint_);
    for (const BlockKey& key : prompt.keys) request.mutable_keys()->append(std::string(key.view()));
    request.set_pin_ms(pin_ms);
    const grpc::Status status = stub_->PinBlocks(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.outcomes().begin(), response.outcomes().end()};
  }
  uint64_t PinnedBytes() {
    const v1::DescribeResponse described = Describe();
    for (const v1::TenantInfo& tenant : described.tenants()) {
      if (tenant.tenant() == "public") return tenant.pinned_bytes();
    }
    return 0;
  }

  const std::string path_;
};

TEST_F(TenantLimitsTest, OverItsRequestsATenantIsToldHowLongToWait) {
  StartWith("* requests=3");
  const TestPrompt prompt = MakePrompt(1, 1);
  grpc::Status status;
  int admitted = 0;
  while ((status = Lookup(prompt)).ok()) ++admitted;
  EXPECT_GE(admitted, 3);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("over its 3 requests a second"));
  EXPECT_TRUE(RetryAfter(FromGrpcStatus(status)).has_value());
  // What only looks or ends something is answered.
  EXPECT_GT(Describe().load().host_bytes(), 0u);
}

TEST_F(TenantLimitsTest, OverItsBytesATenantsReservesAndGetsWait) {
  StartWith("public bytes=1KiB");
  Put(MakePrompt(1, 2));
  EXPECT_EQ(Lookup(MakePrompt(2, 1)).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(TenantLimitsTest, AQuotaHoldsAndAChangedFileIsTakenOver) {
  StartWith("public reserved=1MiB");
  const TestPrompt large = MakePrompt(1, 128);  // 16 KiB each.
  EXPECT_EQ(EndOf(large), v1::RESERVE_OUTCOME_QUOTA);
  WriteQuotas("# nobody\n");
  while (EndOf(MakePrompt(2, 128)) != v1::RESERVE_OUTCOME_RESERVED) {
  }
  WriteQuotas("public hots=1GiB");  // Changes nothing.
  EXPECT_EQ(EndOf(MakePrompt(3, 128)), v1::RESERVE_OUTCOME_RESERVED);
}

TEST_F(TenantLimitsTest, APinOverItsBudgetIsSaidAndThoseWithinItAreSeen) {
  StartWith("public pinned=32KiB");
  const TestPrompt prompt = MakePrompt(1, 3);  // 16 KiB each.
  EXPECT_THAT(Pin(prompt, 60'000), Each(v1::PIN_OUTCOME_NOT_THERE));
  v1::ReserveRequest request = ReserveRequestOf(prompt);
  request.mutable_retention()->set_pin_ms(60'000);
  v1::ReserveResponse reserved;
  ASSERT_TRUE(stub_->Reserve(Context().get(), request, &reserved).ok());
  ASSERT_EQ(reserved.answers_size(), 3);
  EXPECT_EQ(reserved.answers(0).pin(), v1::PIN_OUTCOME_PINNED);
  EXPECT_EQ(reserved.answers(1).pin(), v1::PIN_OUTCOME_PINNED);
  EXPECT_EQ(reserved.answers(2).pin(), v1::PIN_OUTCOME_BUDGET);
  EXPECT_EQ(reserved.answers(2).outcome(), v1::RESERVE_OUTCOME_RESERVED);
  EXPECT_EQ(PinnedBytes(), 32u << 10);
  EXPECT_THAT(Pin(prompt, 0), Each(v1::PIN_OUTCOME_RELEASED));
  EXPECT_EQ(PinnedBytes(), 0u);
  request.mutable_retention()->set_pin_ms(uint64_t{8} * 24 * 3600 * 1000);
  EXPECT_THAT(stub_->Reserve(Context().get(), request, &reserved).error_message(),
              HasSubstr("retention: pin_ms: 691200000, at most 604800000"));
}

TEST_F(TenantLimitsTest, ANodeDoesNotStartWithoutItsLimits) {
  NodeConfig config = SmallConfig();
  config.quota_file = "/nowhere/quotas";
  EXPECT_THAT(std::string(Node::Start(config).status().message()), HasSubstr("/nowhere/quotas"));
  WriteQuotas("public host-kept=60MiB");
  config.quota_file = path_;
  const absl::Status status = Node::Start(config).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 48MiB is kept"));
}

TEST_F(TenantLimitsTest, WhatAWriterWroteIsPurgedByItsIdentity) {
  const TestPrompt prompt = MakePrompt(1, 3);
  Put(prompt);
  v1::PurgeWriterRequest request;
  v1::PurgeWriterResponse response;
  EXPECT_EQ(stub_->PurgeWriter(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_writer("somebody-else");
  ASSERT_TRUE(stub_->PurgeWriter(Context().get(), request, &response).ok());
  EXPECT_EQ(response.blocks(), 0u);
  EXPECT_EQ(Present(prompt), 3u);
  request.set_writer("insecure");
  ASSERT_TRUE(stub_->PurgeWriter(Context().get(), request, &response).ok());
  EXPECT_TRUE(response.done());
  EXPECT_EQ(response.blocks(), 3u);
  EXPECT_EQ(Present(prompt), 0u);
}

}  // namespace
}  // namespace cairn::node
