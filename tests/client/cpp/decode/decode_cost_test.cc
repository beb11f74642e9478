// The cost of serving against fetching, by hand-made numbers whose answers can be read off.
#include "client/cpp/decode/decode_cost.h"

#include <gmock/gmock.h>

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A gigabyte of prefix over a link of a gigabyte a second; a step served takes 1 ms a layer more.
DecodeCostInputs Inputs() {
  DecodeCostInputs inputs;
  inputs.prefix_tokens = 1000;
  inputs.layers = 10;
  inputs.stored_bytes = 100e3;
  inputs.query_bytes = inputs.answer_bytes = 500;
  inputs.new_tokens = 10;
  inputs.round_trip_seconds = 1e-3;
  inputs.link_bytes_per_second = 1e9;
  inputs.local_bytes_free = 2e9;
  return inputs;
}

TEST(DecodeCostTest, AShortAnswerIsServedAndALongOneFetched) {
  DecodeCostInputs inputs = Inputs();
  DecodeCost cost = CompareDecodeCost(inputs);
  EXPECT_EQ(cost.way, DecodeWay::kServe);
  EXPECT_DOUBLE_EQ(cost.fetch_bytes, 1e9);
  EXPECT_DOUBLE_EQ(cost.serve_bytes, 10 * 10 * 1000);
  EXPECT_NEAR(cost.serve_seconds, 10 * 10 * (1e-3 + 1e-6), 1e-9);
  EXPECT_NEAR(cost.fetch_seconds, 1 + 1e-3, 1e-9);
  inputs.new_tokens = 1000;
  cost = CompareDecodeCost(inputs);
  EXPECT_EQ(cost.way, DecodeWay::kFetch);
  EXPECT_THAT(cost.why, StartsWith("fetched: 1000 new tokens"));
}

TEST(DecodeCostTest, TheBreakEvenIsWhereTheChoiceTurns) {
  DecodeCostInputs inputs = Inputs();
  const uint64_t even = *CompareDecodeCost(inputs).break_even_new_tokens;
  EXPECT_EQ(even, 100);  // 1.001 s of fetching over 10.01 ms a token.
  inputs.new_tokens = even - 1;
  EXPECT_EQ(CompareDecodeCost(inputs).way, DecodeWay::kServe);
  inputs.new_tokens = even + 1;
  EXPECT_EQ(CompareDecodeCost(inputs).way, DecodeWay::kFetch);
}

TEST(DecodeCostTest, WhereTheNodeIsNoSlowerFetchingNeverPays) {
  DecodeCostInputs inputs = Inputs();
  inputs.new_tokens = 1 << 30;
  inputs.node_bytes_per_second = 100e9;  // Twice over 10 ms a layer at home.
  inputs.local_bytes_per_second = 10e9;
  const DecodeCost cost = CompareDecodeCost(inputs);
  EXPECT_EQ(cost.way, DecodeWay::kServe);
  EXPECT_FALSE(cost.break_even_new_tokens.has_value());
  EXPECT_THAT(cost.why, HasSubstr("no slower than one at home"));
}

TEST(DecodeCostTest, WhatDoesNotFitAtHomeIsServed) {
  DecodeCostInputs inputs = Inputs();
  inputs.new_tokens = 1 << 30;
  inputs.local_bytes_free = 1e9 - 1;
  const DecodeCost cost = CompareDecodeCost(inputs);
  EXPECT_EQ(cost.way, DecodeWay::kServe);
  EXPECT_FALSE(cost.break_even_new_tokens.has_value());
  EXPECT_THAT(cost.why, HasSubstr("999999999 are free"));
}

TEST(DecodeCostTest, StepsOfSeveralTokensShareTheirRoundTrips) {
  DecodeCostInputs inputs = Inputs();
  const uint64_t even = *CompareDecodeCost(inputs).break_even_new_tokens;
  inputs.tokens_per_step = inputs.rows_per_step = 4;
  const DecodeCost cost = CompareDecodeCost(inputs);
  EXPECT_GT(*cost.break_even_new_tokens, 3 * even);
  EXPECT_DOUBLE_EQ(cost.serve_bytes, 3 * 10 * 4 * 1000);  // Ten tokens are three steps.
}

TEST(DecodeCostTest, NothingToComeIsServed) {
  DecodeCostInputs inputs = Inputs();
  inputs.new_tokens = 0;
  EXPECT_EQ(CompareDecodeCost(inputs).way, DecodeWay::kServe);
  EXPECT_EQ(CompareDecodeCost({}).way, DecodeWay::kServe);
}

}  // namespace
}  // namespace cairn
