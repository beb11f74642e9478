// Rows that come: where they go, which are left alone, and how each kind of bad ones is refused.
// Each test is a story on a small store with a fake clock.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cache_node/decode/sequence/row_check.h"
#include "common/base/check.h"
#include "tests/cache_node/decode/sequence/sequence_world.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

class SequenceAppendTest : public ::testing::Test {
 protected:
  SequenceAppendTest() {
    prompt_ = w_.store.Prompt("t", 1, 2);
    CAIRN_CHECK(w_.store.Put(prompt_) == 2);
    id_ = w_.Open(prompt_, {.reserve_tokens = 10});
  }
  ~SequenceAppendTest() override {
    EXPECT_TRUE(w_.Audit().ok()) << w_.Audit();
    w_.table->CloseAll();
    const absl::Status quiet = w_.Quiet();
    EXPECT_TRUE(quiet.ok()) << quiet;
  }

  using Where = SequenceWorld::Where;
  // Rows at position 8, bent before they are sent.
  absl::Status AppendBent(const std::function<void(SequenceWorld::Rows*, AppendRows*)>& bend) {
    SequenceWorld::Rows made = w_.MakeRows({}, 8, {1, 2});
    AppendRows rows = made.rows;
    rows.keys = made.keys;
    rows.values = made.values;
    rows.tokens = made.tokens;
    bend(&made, &rows);
    return w_.table->Append(*w_.table->Find("t", id_), rows);
  }
  void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& words) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(w_.Length(id_), 8u);
    EXPECT_EQ(w_.table->Numbers().bytes_used, 0u);
  }
  void ExpectInvalid(const absl::Status& status, const std::string& words) {
    ExpectRefused(status, absl::StatusCode::kInvalidArgument, words);
  }

  SequenceWorld w_;
  TestPrompt prompt_;
  SequenceId id_;
};

TEST_F(SequenceAppendTest, LayersAndSlicesHaveTheirOwnLengths) {
  ASSERT_TRUE(w_.TryAppend(id_, {.slices = 1, .layer = 0}, 8, {1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(w_.TryAppend(id_, {.slices = 1, .layer = 1}, 8, {1, 2, 3}).ok());
  ASSERT_TRUE(w_.TryAppend(id_, {.first_slice = 1, .slices = 1, .layer = 0}, 8, {1}).ok());
  const auto sequence = w_.table->Find("t", id_);
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ((*sequence)->Stored(0, 0, 0).tokens, 13u);
  EXPECT_EQ((*sequence)->Stored(0, 0, 1).tokens, 11u);
  EXPECT_EQ((*sequence)->Stored(0, 1, 0).tokens, 9u);
  EXPECT_EQ((*sequence)->Stored(0, 1, 1).tokens, 8u);
  EXPECT_EQ((*sequence)->length_tokens(), 8u);
  EXPECT_EQ((*sequence)->end_tokens(), 13u);
  for (const SegmentId& segment : {SegmentId{0, 0, 0}, SegmentId{0, 0, 1}, SegmentId{0, 1, 0}}) {
    EXPECT_TRUE(w_.SegmentHolds(**sequence, segment, 8, {1, 2, 3, 4, 5}));
  }
  // Rows of both slices leave a hole in the one that has less.
  EXPECT_EQ(w_.TryAppend(id_, {.layer = 0}, 12, {5}).code(), absl::StatusCode::kFailedPrecondition);
  // From where that one ends, each takes what it lacks.
  ASSERT_TRUE(w_.TryAppend(id_, {.layer = 0}, 9, {2, 3, 4, 5, 6}).ok());
  ASSERT_TRUE(w_.TryAppend(id_, {.layer = 1}, 8, {1, 2, 3, 4, 5, 6}).ok());
  EXPECT_TRUE(w_.Holds(id_, 8, {1, 2, 3, 4, 5, 6}));
}

TEST_F(SequenceAppendTest, RowsThatAreStoredAreLeftAsTheyAre) {
  ASSERT_TRUE(w_.Append(id_, 8, {1, 2, 3}).ok());
  // Sent again with other bytes under the same tokens: nothing changes but what is new.
  SequenceWorld::Rows other = w_.MakeRows({}, 8, {9, 9, 9, 4});
  other.tokens = {1, 2, 3, 4};
  const SequenceWorld::Rows right = w_.MakeRows({}, 11, {4});
  const size_t row = right.keys.size();
  other.keys.replace(3 * row, row, right.keys);
  other.values.replace(3 * row, row, right.values);
  AppendRows rows = other.rows;
  rows.keys = other.keys;
  rows.values = other.values;
  rows.tokens = other.tokens;
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(w_.table->Append(*w_.table->Find("t", id_), rows).ok());
  }
  ASSERT_TRUE(w_.TryAppend(id_, {.layer = 1}, 11, {4}).ok());
  EXPECT_TRUE(w_.Holds(id_, 8, {1, 2, 3, 4}));
}

TEST_F(SequenceAppendTest, OtherTokensAreRefusedUntilATruncation) {
  ASSERT_TRUE(w_.TryAppend(id_, {.layer = 0}, 8, {1, 2}).ok());
  const absl::Status refused = w_.TryAppend(id_, {.layer = 1}, 8, {1, 3});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("token 3 at position 9, where 2 is known"));
  EXPECT_EQ(w_.Length(id_), 8u);
  ASSERT_TRUE(w_.table->Truncate("t", id_, 9).ok());
  EXPECT_TRUE(w_.Append(id_, 8, {1, 3}).ok());
  EXPECT_TRUE(w_.Holds(id_, 8, {1, 3}));
}

TEST_F(SequenceAppendTest, RowsMayComeWithoutTokensAndTheseLater) {
  const auto bare = [](SequenceWorld::Rows*, AppendRows* rows) { rows->tokens = {}; };
  ASSERT_TRUE(AppendBent(bare).ok());
  EXPECT_TRUE(w_.TryAppend(id_, {.layer = 1}, 8, {1, 2}).ok());
  EXPECT_FALSE(w_.TryAppend(id_, {.layer = 0}, 8, {1, 7}).ok());
}

TEST_F(SequenceAppendTest, WithinThePromptItsTokensCount) {
  const SequenceId id = w_.Open(prompt_, {.more_tokens = {41, 42}});
  EXPECT_EQ(w_.Append(id, 8, {41, 43}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(w_.Append(id, 8, {41, 42, 43}).ok());
  // A truncation does not change the prompt.
  ASSERT_TRUE(w_.table->Truncate("t", id, 8).ok());
  EXPECT_EQ(w_.Append(id, 8, {40}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(w_.Append(id, 8, {41, 42, 7}).ok());
  EXPECT_TRUE(w_.Holds(id, 8, {41, 42, 7}));
  // Nor do rows that are stored already have others.
  EXPECT_EQ(w_.TryAppend(id, {}, 7, {1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(w_.TryAppend(id, {}, 7, {prompt_.tokens[7]}).ok());
}

TEST_F(SequenceAppendTest, AHoleIsRefusedWithTheLength) {
  ExpectRefused(w_.TryAppend(id_, {}, 9, {1}), absl::StatusCode::kFailedPrecondition,
                "holds 8 tokens");
  ExpectRefused(w_.TryAppend(id_, {}, UINT64_MAX, {1}), absl::StatusCode::kFailedPrecondition,
                "holds 8 tokens");
}

TEST_F(SequenceAppendTest, PastTheReservationIsRefusedWithBothNumbers) {
  const std::vector<uint32_t> tokens(11, 1);
  ExpectRefused(w_.TryAppend(id_, {}, 8, tokens), absl::StatusCode::kResourceExhausted,
                "up to position 19 are past the reservation, which ends at 18");
  EXPECT_TRUE(w_.Append(id_, 8, std::vector<uint32_t>(10, 1)).ok());
  EXPECT_EQ(w_.Append(id_, 18, {1}).code(), absl::StatusCode::kResourceExhausted);
  // What is stored already is still fine.
  EXPECT_TRUE(w_.Append(id_, 17, {1}).ok());
}

TEST_F(SequenceAppendTest, ASequenceWithoutAReservationIsReadOnly) {
  const SequenceId id = w_.Open(prompt_, {.reserve_tokens = 0});
  EXPECT_EQ(w_.Append(id, 8, {1}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(w_.Length(id), 8u);
}

TEST_F(SequenceAppendTest, PlacesThatTheLayoutLacksAreNamed) {
  ExpectInvalid(w_.TryAppend(id_, {.group = 2}, 8, {1}), "group 2 of a layout of 2");
  ExpectInvalid(w_.TryAppend(id_, {.layer = 2}, 8, {1}), "layer 2 of a group of 2");
  ExpectInvalid(w_.TryAppend(id_, {.first_slice = 1, .slices = 2}, 8, {1}), "of a group of 2");
  ExpectInvalid(w_.TryAppend(id_, {.first_slice = 2, .slices = 1}, 8, {1}), "of a group of 2");
  ExpectInvalid(w_.TryAppend(id_, {.slices = 0}, 8, {1}), "slices 0");
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->slices = UINT32_MAX; }),
                "of a group of 2");
}

TEST_F(SequenceAppendTest, SizesThatDoNotFitAreNamed) {
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->keys.remove_suffix(1); }),
                "255 bytes of keys");
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->values = {}; }), "0 of values");
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->rows = 3; }), "3 rows with 256");
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->rows = 0; }), "0 rows");
  ExpectInvalid(AppendBent([](auto*, AppendRows* rows) { rows->tokens = rows->tokens.subspan(1); }),
                "1 tokens for 2 rows");
  ExpectInvalid(
      AppendBent([](auto*, AppendRows* rows) { rows->row_dtype = kernels::KvDtype::kFloat16; }),
      "elements of 2 bytes");
  ExpectInvalid(
      AppendBent([](auto*, AppendRows* rows) { rows->row_dtype = kernels::KvDtype::kInt8; }),
      "row_dtype 5");
}

TEST_F(SequenceAppendTest, NumbersThatAreNotFiniteAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    const auto in = [bad](std::string* bytes) { std::memcpy(bytes->data() + 40, &bad, 4); };
    ExpectInvalid(AppendBent([&](SequenceWorld::Rows* made, AppendRows* rows) {
                    in(&made->keys);
                    rows->keys = made->keys;
                  }),
                  "element 10 of the keys");
    ExpectInvalid(AppendBent([&](SequenceWorld::Rows* made, AppendRows* rows) {
                    in(&made->values);
                    rows->values = made->values;
                  }),
                  "element 10 of the values");
  }
}

TEST_F(SequenceAppendTest, AGroupThatThePromptsBlocksLackIsNotAppended) {
  // Blocks as a worker without a draft model writes them.
  const TestPrompt bare = w_.store.Prompt("t", 5, 2);
  const auto reserved = w_.store.Reserve(bare);
  ASSERT_TRUE(reserved.ok());
  for (uint32_t block = 0; block < 2; ++block) {
    for (uint32_t slice = 0; slice < 2; ++slice) {
      ASSERT_TRUE(
          w_.store.Write("t", *reserved->token, bare.keys[block], block, {0, slice, 0}, 2).ok());
      const SegmentRun run = w_.store.Piece(bare.keys[block], block, {0, slice, 0}, 2).run;
      ASSERT_TRUE(w_.store.store->Commit("t", *reserved->token, {&run, 1}).ok());
    }
  }
  ASSERT_TRUE(w_.store.store->Abort("t", *reserved->token).ok());
  ASSERT_EQ(w_.store.Present(bare), 2u);
  const SequenceId id = w_.Open(bare);
  const auto sequence = w_.table->Find("t", id);
  ASSERT_TRUE(sequence.ok());
  EXPECT_EQ((*sequence)->Stored(1, 0, 0).tokens, 0u);
  EXPECT_EQ((*sequence)->length_tokens(), 8u);
  const absl::Status refused = w_.TryAppend(id, {.group = 1}, 0, {bare.tokens[0]});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("from 0 to 8 was not stored"));
  EXPECT_TRUE(w_.Append(id, 8, {1, 2}).ok());
}

TEST(SequenceLayoutTest, ScalesOneAHeadAreForReadingOnly) {
  Namespace fields = SequenceWorld::Shape(false);
  fields.layout.groups[0].dtype = Dtype::kInt8;
  fields.layout.groups[0].scales = ScaleKind::kPerHead;
  SequenceWorld w(SequenceWorld::TableOptions(), fields);
  const TestPrompt prompt = w.store.Prompt("t", 1, 1);
  ASSERT_EQ(w.store.Put(prompt), 1u);
  const auto refused = w.TryOpen(prompt, {.reserve_tokens = 1});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("group 0"));
  const auto reading = w.TryOpen(prompt, {.reserve_tokens = 0});
  EXPECT_TRUE(reading.ok());
  EXPECT_EQ(w.table->Fork("t", reading->id, 1, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SequenceLayoutTest, OpaqueRowsAreForReadingOnly) {
  SequenceWorld w(SequenceWorld::TableOptions(), TestStore::Shape(1024));
  const TestPrompt prompt = w.store.Prompt("t", 1, 1);
  ASSERT_EQ(w.store.Put(prompt), 1u);
  EXPECT_EQ(w.TryOpen(prompt, {.reserve_tokens = 1}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(w.TryOpen(prompt, {.reserve_tokens = 0}).ok());
}

TEST(SequenceLayoutTest, RowsAreStoredWithTheirOwnScales) {
  Namespace fields = SequenceWorld::Shape(false);
  fields.layout.groups[0].dtype = Dtype::kInt8;
  fields.layout.groups[0].scales = ScaleKind::kPerTokenAndHead;
  SequenceWorld w(SequenceWorld::TableOptions(), fields);
  const TestPrompt prompt = w.store.Prompt("t", 1, 1);
  ASSERT_EQ(w.store.Put(prompt), 1u);
  const SequenceId id = w.Open(prompt);
  ASSERT_TRUE(w.Append(id, 4, {1}).ok());
  // The largest element of a head is 127 scales.
  const SequenceWorld::Rows sent = w.MakeRows({}, 4, {1});
  std::vector<float> keys(sent.keys.size() / 4);
  std::memcpy(keys.data(), sent.keys.data(), sent.keys.size());
  float largest = 0;
  for (int dim = 0; dim < 8; ++dim) largest = std::max(largest, std::abs(keys[dim]));
  const std::byte* slot = (*w.table->Find("t", id))->Stored(0, 0, 0).slots[1];
  float scale = 0;
  std::memcpy(&scale, slot + w.map->TilesOfGroup(0).key_scales.offset, 4);
  EXPECT_FLOAT_EQ(scale * 127, largest);
}

TEST(RowCheckTest, WhatWouldBeInfiniteOnceStoredIsRefused) {
  using kernels::KvDtype;
  const auto first = [](std::vector<float> rows, KvDtype stored) {
    return FirstUnstorable({reinterpret_cast<const char*>(rows.data()), rows.size() * 4},
                           KvDtype::kFloat32, stored);
  };
  EXPECT_EQ(first({1, -65519, 65504}, KvDtype::kFloat16), std::nullopt);
  EXPECT_EQ(first({1, 2, -65520}, KvDtype::kFloat16), 2u);
  EXPECT_EQ(first({-3e38f}, KvDtype::kBfloat16), std::nullopt);
  EXPECT_EQ(first({std::numeric_limits<float>::max()}, KvDtype::kBfloat16), 0u);
  EXPECT_EQ(first({std::numeric_limits<float>::max()}, KvDtype::kFloat32), std::nullopt);
  EXPECT_EQ(first({std::numeric_limits<float>::max()}, KvDtype::kFloat8E4m3fn), std::nullopt);
  const auto half = [](uint16_t bits, KvDtype source, KvDtype stored) {
    return FirstUnstorable({reinterpret_cast<const char*>(&bits), 2}, source, stored);
  };
  EXPECT_EQ(half(0x7bff, KvDtype::kFloat16, KvDtype::kFloat16), std::nullopt);
  EXPECT_EQ(half(0xfc00, KvDtype::kFloat16, KvDtype::kFloat32), 0u);
  EXPECT_EQ(half(0x477f, KvDtype::kBfloat16, KvDtype::kFloat16), std::nullopt);
  EXPECT_EQ(half(0xc780, KvDtype::kBfloat16, KvDtype::kFloat16), 0u);
  EXPECT_EQ(half(0x7f80, KvDtype::kBfloat16, KvDtype::kBfloat16), 0u);
}

}  // namespace
}  // namespace cairn::node
