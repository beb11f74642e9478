// Decode streams: openings, steps under way, batches of several streams, lost streams and what of
// their sequences goes on; and how a stream ends.
#include <gmock/gmock.h>

#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/wire/decode_limits.h"
#include "tests/cache_node/service/decode_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

std::vector<uint32_t> Tokens(uint32_t first, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<uint32_t>(i);
  return tokens;
}

std::vector<uint32_t> Joined(std::vector<uint32_t> a, const std::vector<uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class DecodeStreamTest : public DecodeFixture {
 protected:
  grpc::Status EndOf(const v1::DecodeRequest& request, bool opened = true) {
    TestStream stream(decode_.get(), CallerContext());
    if (opened) {
      EXPECT_TRUE(stream.SendOpen(fingerprint_, {Parameters()}));
      EXPECT_TRUE(stream.Receive(0).empty());
    }
    stream.Send(request);
    v1::DecodeResponse response;
    EXPECT_FALSE(stream.ReceiveAny(&response)) << response.ShortDebugString();
    return stream.Finish();
  }
};

TEST_F(DecodeStreamTest, AppendedRowsAreSeenByTheQueriesThatComeWithThem) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const std::string id = OpenSequence(prompt.tokens, 40);
  const auto stream = NewStream();
  std::vector<uint32_t> tokens = prompt.tokens;
  for (uint64_t step = 1; step <= 20; ++step) {
    const std::vector<uint32_t> next = Tokens(static_cast<uint32_t>(1000 * step), 1 + step % 2);
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const v1::AttendItem item = AppendItem(id, layer, tokens.size(), next);
      const auto results = stream->Ask(step, layer, {item});
      ASSERT_EQ(results.size(), 1u);
      ExpectAnswer(results[0], item, layer, Joined(tokens, next));
      EXPECT_EQ(results[0].length_tokens(), tokens.size() + next.size());
    }
    tokens = Joined(tokens, next);
  }
  EXPECT_EQ(GetSequence(id).length_tokens(), tokens.size());
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(DecodeStreamTest, LeasedBlocksAndATailAreAnsweredInOneStep) {
  const TestPrompt prompt = PutPrompt(1, 3);
  const std::string lease = Lease(prompt);
  v1::OpenSequenceRequest request = OpenRequestOf(prompt.tokens, 16);
  request.set_first_block(3);  // A tail alone.
  v1::OpenSequenceResponse opened;
  ASSERT_TRUE(Open(request, &opened).ok());
  EXPECT_EQ(opened.first_token(), 48u);
  EXPECT_EQ(opened.covered_tokens(), 48u);
  const auto stream = NewStream();
  const v1::AttendItem prefix = LeasedItem(lease, 48);
  const v1::AttendItem tail = AppendItem(opened.sequence(), 1, 48, {7});
  const auto results = stream->Ask(1, 1, {prefix, tail});
  ASSERT_EQ(results.size(), 2u);
  ExpectAnswer(results[0], prefix, 1, prompt.tokens);
  ExpectAnswer(results[1], tail, 1, Joined(prompt.tokens, {7}), 3);
}

TEST_F(DecodeStreamTest, TwoMicroBatchesAlternateOnOneStream) {
  const std::string a = OpenSequence({0}, 32);
  const std::string b = OpenSequence({0}, 32);
  const auto stream = NewStream();
  std::vector<uint32_t> tokens;
  uint64_t number = 1;
  for (uint32_t step = 0; step < 10; ++step) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const v1::AttendItem of_a = AppendItem(a, layer, step, {step});
      const v1::AttendItem of_b = AppendItem(b, layer, step, {step});
      ASSERT_TRUE(stream->Send(number, layer, {of_a}));
      ASSERT_TRUE(stream->Send(number + 1, layer, {of_b}));
      const auto first = stream->Receive(number);
      const auto second = stream->Receive(number + 1);
      number += 2;
      ASSERT_EQ(first.size() + second.size(), 2u);
      ExpectAnswer(first[0], of_a, layer, Joined(tokens, {step}));
      ExpectAnswer(second[0], of_b, layer, Joined(tokens, {step}));
    }
    tokens.push_back(step);
  }
}

TEST_F(DecodeStreamTest, ManyStepsUnderWayAreAllAnswered) {
  const TestPrompt prompt = PutPrompt(1, 2);
  const std::string lease = Lease(prompt);
  const auto stream = NewStream();
  constexpr uint64_t kSteps = 4 * kDecodeStepsMax;
  std::thread sender([&] {
    for (uint64_t step = 1; step <= kSteps; ++step) {
      ASSERT_TRUE(stream->Send(step, 0, {LeasedItem(lease, 40)}));
    }
    stream->WritesDone();
  });
  std::map<uint64_t, int> answers;
  v1::DecodeResponse response;
  while (stream->ReceiveAny(&response)) {
    ++answers[response.step()];
    ASSERT_EQ(response.results_size(), 1);
    EXPECT_EQ(response.results(0).code(), 0);
  }
  sender.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers.size(), kSteps);
}

TEST_F(DecodeStreamTest, AStreamThatIsLostIsContinuedOnAnother) {
  const TestPrompt prompt = PutPrompt(1, 2);
  const std::string id = OpenSequence(prompt.tokens, 32);
  auto stream = NewStream();
  Append(*stream, id, 32, {1, 2, 3});
  // The last token reached one layer only.
  ASSERT_EQ(stream->Ask(5, 0, {AppendItem(id, 0, 35, {4})})[0].code(), 0);
  stream->Cancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);

  const v1::GetSequenceResponse state = GetSequence(id);
  EXPECT_EQ(state.length_tokens(), 35u);
  ASSERT_EQ(state.slices_size(), 2);
  EXPECT_THAT(state.slices(1).length_tokens(), ::testing::ElementsAre(36, 35));
  const auto again = NewStream();
  // What is stored already is left as it is, whatever comes with it.
  v1::AttendItem repeated = AppendItem(id, 0, 34, {3, 4});
  repeated.mutable_keys()->assign(repeated.keys().size(), '\0');
  const auto results = again->Ask(1, 0, {repeated});
  ExpectAnswer(results[0], repeated, 0, Joined(prompt.tokens, {1, 2, 3, 4}));
  // Other tokens than those that are known are no repetition.
  const auto other = again->Ask(2, 0, {AppendItem(id, 0, 35, {9})});
  EXPECT_EQ(other[0].code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  const auto rest = again->Ask(3, 1, {AppendItem(id, 1, 35, {4})});
  EXPECT_EQ(rest[0].length_tokens(), 36u);
}

TEST_F(DecodeStreamTest, WhatIsWrongWithAnItemIsItsAlone) {
  const std::string id = OpenSequence({1}, 4);
  const std::string other = OpenSequence({1}, 16);
  ASSERT_EQ(Close(other), 1u);
  const auto stream = NewStream();
  std::vector<v1::AttendItem> items(7, AppendItem(id, 0, 0, {1}));
  items[1] = AppendItem(id, 0, 3, {4});            // A hole.
  items[2] = AppendItem(id, 0, 1, Tokens(5, 30));  // Past the reservation.
  items[3] = SequenceItem(other, 0);               // Closed.
  items[4].mutable_values()->pop_back();
  items[5].clear_target();
  const float infinity = std::numeric_limits<float>::infinity();
  items[6].set_position(1);
  std::memcpy(items[6].mutable_keys()->data(), &infinity, sizeof(infinity));
  const auto results = stream->Ask(1, 0, items);
  ASSERT_EQ(results.size(), 7u);
  using Code = absl::StatusCode;
  const std::vector<Code> expected = {Code::kOk,
                                      Code::kFailedPrecondition,
                                      Code::kResourceExhausted,
                                      Code::kAborted,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument,
                                      Code::kInvalidArgument};
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(static_cast<Code>(results[i].code()), expected[i]) << i << results[i].message();
  }
  const auto layer = stream->Ask(2, 9, {SequenceItem(id, 0), SequenceItem(id, 0)});
  EXPECT_EQ(static_cast<Code>(layer[1].code()), Code::kInvalidArgument);
  ASSERT_TRUE(stream->Send(3, 0, {SequenceItem(id, 0)}, /*parameters=*/1));
  const auto parameters = stream->Receive(3);
  EXPECT_EQ(static_cast<Code>(parameters[0].code()), Code::kInvalidArgument);
  EXPECT_THAT(parameters[0].message(), HasSubstr("parameters: 1"));
}

TEST_F(DecodeStreamTest, WhatIsWrongWithAStreamEndsIt) {
  using grpc::StatusCode;
  v1::DecodeRequest step;
  step.set_step(1);
  EXPECT_EQ(EndOf(step, /*opened=*/false).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::DecodeRequest open;
  open.mutable_open()->set_fingerprint(fingerprint_);
  const grpc::Status none = EndOf(open, /*opened=*/false);
  EXPECT_EQ(none.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(none.error_message(), HasSubstr("parameters: 0"));
  *open.mutable_open()->add_parameters() = Parameters();
  EXPECT_THAT(EndOf(open).error_message(), HasSubstr("open already"));
  v1::DecodeRequest bad = open;
  bad.mutable_open()->mutable_parameters(0)->set_group(5);
  EXPECT_THAT(EndOf(bad, false).error_message(), HasSubstr("parameters[0]: group: 5"));
  bad = open;
  bad.mutable_open()->set_fingerprint(std::string(32, 'x'));
  EXPECT_EQ(EndOf(bad, false).error_code(), StatusCode::FAILED_PRECONDITION);
  bad = open;
  bad.set_step(4);
  EXPECT_EQ(EndOf(bad, false).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(EndOf(v1::DecodeRequest()).error_message(), HasSubstr("step: 0"));
  v1::DecodeRequest large = step;
  large.add_items()->set_queries(std::string(2 << 20, 'x'));
  EXPECT_EQ(EndOf(large).error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(DecodeStreamTest, MoreStreamsThanMayBeAreRefusedUntilOneEnds) {
  NodeConfig config = DecodeConfigOfTests();
  config.decode.streams_max = 2;
  StartDecodeNode(config);
  const auto first = NewStream();
  auto second = NewStream();
  TestStream third(decode_.get(), CallerContext());
  v1::DecodeResponse response;
  EXPECT_FALSE(third.ReceiveAny(&response));
  const grpc::Status refused = third.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--decode-streams-max"));
  second->Cancel();
  (void)second->Finish();
  while (true) {  // The server hears of it when it does.
    TestStream again(decode_.get(), CallerContext());
    again.SendOpen(fingerprint_, {Parameters()});
    if (again.ReceiveAny(&response)) break;
  }
}

TEST_F(DecodeStreamTest, ManyStreamsOfOnePrefixReadItOnceWhenTheNodeIsBusy) {
  NodeConfig config = DecodeConfigOfTests();
  config.decode.threads = 1;
  StartDecodeNode(config);
  const TestPrompt prompt = PutPrompt(1, 100);
  const std::string lease = Lease(prompt);
  constexpr uint64_t kStreams = 6;
  std::vector<std::thread> workers;
  for (uint64_t w = 0; w < kStreams; ++w) {
    workers.emplace_back([&] {
      const auto stub = NewDecodeStub();
      const auto stream = NewStream(stub.get());
      for (uint64_t step = 1; step <= 30; ++step) {
        const v1::AttendItem item = LeasedItem(lease, 1600, 20);
        const auto results = stream->Ask(step, 0, {item});
        ASSERT_EQ(results.size(), 1u);
        ASSERT_EQ(results[0].code(), 0);
        if (step == 30) ExpectAnswer(results[0], item, 0, prompt.tokens);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::string text = node_->metrics().Text();
  EXPECT_THAT(text, HasSubstr("cairn_decode_steps_total 180"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("cairn_decode_shared_rows_total 0\n")));
}

}  // namespace
}  // namespace cairn::node
