// What a node answers is held against what was asked: each test bends one number of a good answer.
#include "client/cpp/decode/attend_result.h"

#include <limits>

#include "common/rpc/retry_status.h"
#include "tests/client/cpp/decode/decode_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class AttendResultTest : public DecodeTest {
 protected:
  static constexpr uint64_t kPosition = kPromptTokens;
  static constexpr uint64_t kRows = 2;

  AttendResultTest() {
    v1::AttendItem item;
    item.set_position(kPosition);
    item.set_rows(kRows);
    item.set_queries(Rows(sizes_.query_bytes, kRows));
    CAIRN_CHECK_OK(Whole().Run(parameters_, 0, item, &good_));
  }

  absl::Status Take(const v1::AttendResult& result) {
    return TakeResult(result, parameters_, sizes_, asked_, &rows_);
  }
  void Expect(const v1::AttendResult& bent, const std::string& what) {
    const absl::Status status = Take(bent);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(what));
    EXPECT_TRUE(rows_.output.empty() && rows_.log_sum_exp.empty());
  }
  static void Put(std::string* bytes, size_t index, float value) {
    std::memcpy(bytes->data() + index * sizeof(float), &value, sizeof(value));
  }

  v1::AttendResult good_;
  AskedRows asked_ = {{0, kPromptTokens}, kPosition, kRows, false};
  PartialRows rows_;
};

TEST_F(AttendResultTest, AGoodAnswerIsTaken) {
  ASSERT_TRUE(Take(good_).ok()) << Take(good_);
  EXPECT_EQ(rows_.output.size(), kRows * kQueryHeads * kDim);
  EXPECT_EQ(rows_.log_sum_exp.size(), kRows * kQueryHeads);
}

TEST_F(AttendResultTest, AnAnswerForOtherTokensIsRefused) {
  for (const uint64_t length : {kPromptTokens - 1, kPromptTokens + 1, uint64_t{0}, UINT64_MAX}) {
    v1::AttendResult bent = good_;
    bent.set_length_tokens(length);
    Expect(bent, "where those up to 24 were asked for");
  }
  asked_.may_hold_more = true;
  v1::AttendResult more = good_;
  more.set_length_tokens(kPromptTokens + 1);
  EXPECT_TRUE(Take(more).ok());
}

TEST_F(AttendResultTest, SizesMustBeThoseOfTheRows) {
  for (const int by : {-4, -1, 1, 4}) {
    v1::AttendResult bent = good_;
    bent.mutable_output()->resize(good_.output().size() + static_cast<size_t>(by));
    Expect(bent, "bytes of output");
    bent = good_;
    bent.mutable_log_sum_exp()->resize(good_.log_sum_exp().size() + static_cast<size_t>(by));
    Expect(bent, "bytes of log-sum-exp");
  }
}

TEST_F(AttendResultTest, NumbersThatCannotBeAreRefusedWhereverTheyStand) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {kNan, INFINITY, -INFINITY}) {
    for (const size_t index : {size_t{0}, size_t{17}, kRows * kQueryHeads * kDim - 1}) {
      v1::AttendResult bent = good_;
      Put(bent.mutable_output(), index, value);
      Expect(bent, "not finite");
    }
    for (const size_t index : {size_t{0}, kRows * kQueryHeads - 1}) {
      v1::AttendResult bent = good_;
      Put(bent.mutable_log_sum_exp(), index, value);
      Expect(bent, "a log-sum-exp of");
    }
  }
}

TEST_F(AttendResultTest, RowsThatSeeNothingAreMinusInfinityAndNoOthersAre) {
  parameters_.set_window_tokens(3);
  asked_.position = kPromptTokens + 1;  // Sees 23, and then nothing of the prompt.
  v1::AttendResult bent = good_;
  Expect(bent, "which sees none");
  for (size_t head = kQueryHeads; head < 2 * kQueryHeads; ++head) {
    Put(bent.mutable_log_sum_exp(), head, -INFINITY);
  }
  EXPECT_TRUE(Take(bent).ok()) << Take(bent);
  rows_ = {};
  Put(bent.mutable_log_sum_exp(), 0, -INFINITY);
  Expect(bent, "which sees some");
}

TEST_F(AttendResultTest, WhatAQuerySeesIsAsTheKernelsSeeIt) {
  // Over all windows, sinks, positions and ranges that are small.
  FakeSequence whole = Whole();
  for (uint64_t window : {0, 1, 3, 9}) {
    for (uint64_t sinks : {0, 2}) {
      if (window == 0 && sinks > 0) continue;
      parameters_.set_window_tokens(window);
      parameters_.set_sink_tokens(sinks);
      for (uint64_t position : {0, 3, 23, 24, 26, 31, 32, 33, 40}) {
        v1::AttendItem item;
        item.set_position(position);
        item.set_rows(1);
        item.set_queries(Rows(sizes_.query_bytes, 1));
        v1::AttendResult result;
        ASSERT_TRUE(whole.Run(parameters_, 0, item, &result).ok());
        const bool saw = FloatsOf(result.log_sum_exp())[0] != -INFINITY;
        EXPECT_EQ(SeesAny(parameters_, {0, kPromptTokens}, position), saw)
            << window << " " << sinks << " " << position;
      }
    }
  }
  parameters_.set_window_tokens(0);
  EXPECT_FALSE(SeesAny(parameters_, {8, 12}, 7));
  EXPECT_TRUE(SeesAny(parameters_, {8, 12}, 8));
  EXPECT_FALSE(SeesAny(parameters_, {8, 8}, 20));
}

TEST_F(AttendResultTest, AnItemsStatusIsWhatTheNodeSaid) {
  v1::AttendResult result;
  EXPECT_TRUE(ItemStatus(result).ok());
  result.set_code(8);
  result.set_message("no room");
  result.set_retry_ms(40);
  EXPECT_TRUE(absl::IsResourceExhausted(ItemStatus(result)));
  EXPECT_EQ(ItemStatus(result).message(), "no room");
  EXPECT_EQ(RetryAfter(ItemStatus(result)), absl::Milliseconds(40));
  for (const int code : {-1, 17, 1 << 30}) {
    result.set_code(code);
    EXPECT_TRUE(absl::IsUnknown(ItemStatus(result)));
  }
}

TEST_F(AttendResultTest, RowSizesFollowTheLayoutAndTheSlicesOfTheRank) {
  EXPECT_EQ(sizes_.query_bytes, kQueryHeads * kDim * 4);
  EXPECT_EQ(sizes_.key_bytes, 2 * kDim * 4);
  EXPECT_EQ(sizes_.stored_bytes, 2 * 2 * kDim * 4);
  parameters_.set_first_slice(1);
  parameters_.set_query_heads(2);
  const RowSizes second = RowSizesOf(handle_.payload_map(), parameters_).value();
  EXPECT_EQ(second.slices, 1);
  EXPECT_EQ(second.key_bytes, kDim * 4);
  EXPECT_EQ(second.stored_bytes, 2 * kDim * 4);
}

TEST_F(AttendResultTest, ParametersThatDoNotFitTheLayoutNameTheField) {
  const std::vector<std::pair<std::string, std::function<void(v1::AttentionParameters*)>>> bends = {
      {"group is 1", [](auto* p) { p->set_group(1); }},
      {"first_slice is 2", [](auto* p) { p->set_first_slice(2); }},
      {"slices is 3", [](auto* p) { p->set_slices(3); }},
      {"query_heads is 3", [](auto* p) { p->set_query_heads(3); }},
      {"query_heads is 0", [](auto* p) { p->set_query_heads(0); }},
      {"row_dtype is 4", [](auto* p) { p->set_row_dtype(4); }},
      {"softmax_scale", [](auto* p) { p->set_softmax_scale(0); }},
      {"softmax_scale", [](auto* p) { p->set_softmax_scale(NAN); }},
      {"logit_soft_cap", [](auto* p) { p->set_logit_soft_cap(-1); }},
      {"sink_tokens is 4", [](auto* p) { p->set_sink_tokens(4); }},
      {"latent_value_dim is 8", [](auto* p) { p->set_latent_value_dim(8); }}};
  for (const auto& [what, bend] : bends) {
    v1::AttentionParameters bent = parameters_;
    bend(&bent);
    const auto sizes = RowSizesOf(handle_.payload_map(), bent);
    EXPECT_TRUE(absl::IsInvalidArgument(sizes.status())) << what;
    EXPECT_THAT(sizes.status().message(), HasSubstr(what));
  }
}

}  // namespace
}  // namespace cairn::testing
