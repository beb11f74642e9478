// A stream and the calls of sequences against a fake node that computes with the real kernels:
// answers come to the steps that they are of, several are under way on several nodes, and every
// way in which a stream can be lost is said.
#include "client/cpp/decode/decode_stream.h"

#include "client/cpp/decode/attend_result.h"
#include "common/base/clock.h"
#include "common/rpc/retry_status.h"
#include "common/wire/decode_limits.h"
#include "tests/client/cpp/decode/decode_fixture.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DecodeStreamTest : public DecodeTest {
 protected:
  DecodeStreamTest() { holder_ = Holder(); }

  std::unique_ptr<DecodeStream> Stream(FakeHolder* holder, DecodeStreamOptions options = {}) {
    return holder->decode_client->OpenStream(&queue_, handle_.fingerprint(), {&parameters_, 1},
                                             options);
  }

  SequenceId Open(FakeHolder* holder, const OpenSequenceOptions& options = {}) {
    return holder->decode_client->OpenSequence(handle_, MakePrompt(), options).value().id;
  }

  v1::DecodeRequest Asking(const SequenceId& id, const std::string& queries, uint64_t position) {
    v1::DecodeRequest request;
    v1::AttendItem* item = request.add_items();
    item->set_sequence(std::string(id.view()));
    item->set_position(position);
    item->set_rows(1);
    item->set_queries(queries);
    return request;
  }

  void ExpectWhole(const v1::AttendResult& result, const std::string& queries, uint64_t position) {
    PartialRows rows;
    const absl::Status status =
        TakeResult(result, parameters_, sizes_, {{0, kPromptTokens}, position, 1, false}, &rows);
    ASSERT_TRUE(status.ok()) << status;
    v1::AttendItem item;
    item.set_position(position);
    item.set_rows(1);
    item.set_queries(queries);
    v1::AttendResult want;
    ASSERT_TRUE(Whole().Run(parameters_, 0, item, &want).ok());
    EXPECT_EQ(rows.output, FloatsOf(want.output()));
    EXPECT_EQ(rows.log_sum_exp, FloatsOf(want.log_sum_exp()));
  }

  SystemClock system_clock_;
  CallQueue queue_;
  FakeHolder* holder_;
};

TEST_F(DecodeStreamTest, AStepIsAnsweredOverTheBlocksThatASequencePins) {
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  const std::string queries = Rows(sizes_.query_bytes, 1);
  const uint64_t step = stream->Send(Asking(id, queries, kPromptTokens));
  const auto results = stream->Await(step);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectWhole(results->at(0), queries, kPromptTokens);
  EXPECT_TRUE(stream->opened());
  EXPECT_GT(stream->bytes_sent(), queries.size());
  EXPECT_GT(stream->bytes_received(), sizes_.AnswerBytes());
}

TEST_F(DecodeStreamTest, AsManyStepsAsTheContractAllowsAreUnderWayAndEachGetsItsOwnAnswer) {
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  holder_->decode.Hold();
  std::vector<std::pair<uint64_t, std::string>> asked;
  while (stream->room() > 0) {
    const std::string queries = Rows(sizes_.query_bytes, 1);
    asked.emplace_back(stream->Send(Asking(id, queries, kPromptTokens)), queries);
  }
  EXPECT_THAT(asked, SizeIs(kDecodeStepsMax));
  holder_->decode.Release();
  for (auto one = asked.rbegin(); one != asked.rend(); ++one) {
    const auto results = stream->Await(one->first);
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectWhole(results->at(0), one->second, kPromptTokens);
  }
  EXPECT_EQ(stream->room(), kDecodeStepsMax);
  EXPECT_EQ(stream->deadline(), absl::InfiniteFuture());
}

TEST_F(DecodeStreamTest, StreamsOfOneQueueAreAskedAtOnce) {
  const auto other = Holder();
  const auto first = Stream(holder_);
  const auto second = Stream(other);
  const SequenceId in_first = Open(holder_);
  const SequenceId in_second = Open(other);
  const std::string queries = Rows(sizes_.query_bytes, 1);
  holder_->decode.Hold();
  const uint64_t slow = first->Send(Asking(in_first, queries, kPromptTokens));
  const uint64_t quick = second->Send(Asking(in_second, queries, kPromptTokens));
  DecodeStream* const both[] = {first.get(), second.get()};
  std::optional<std::vector<v1::AttendResult>> answered;
  while (!answered || !first->opened()) {
    AwaitAny(&queue_, clock_, both);
    if (!answered) answered = second->Take(quick);
  }
  holder_->decode.AwaitSteps(1);
  EXPECT_FALSE(first->Take(slow).has_value());
  holder_->decode.Release();
  EXPECT_TRUE(first->Await(slow).ok());
}

TEST_F(DecodeStreamTest, LookingForAnswersWithoutWaitingTakesNoMillisecond) {
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  ASSERT_TRUE(stream->Await(stream->Send(Asking(id, Rows(sizes_.query_bytes, 1), 30))).ok());
  // gRPC waits in whole milliseconds where it waits at all. The quickest of many, as others run
  // beside this.
  absl::Duration quickest = absl::InfiniteDuration();
  for (int i = 0; i < 50; ++i) {
    const absl::Time begin = system_clock_.SteadyNow();
    stream->Poll();
    quickest = std::min(quickest, system_clock_.SteadyNow() - begin);
  }
  EXPECT_LT(quickest, absl::Microseconds(500));
}

TEST_F(DecodeStreamTest, ALostStreamSaysSoAndWhatWasUnderWayIsNotAnswered) {
  holder_->decode.CutStreams(1, 1);
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  const std::string queries = Rows(sizes_.query_bytes, 1);
  ASSERT_TRUE(stream->Await(stream->Send(Asking(id, queries, kPromptTokens))).ok());
  const auto lost = stream->Await(stream->Send(Asking(id, queries, kPromptTokens)));
  EXPECT_TRUE(absl::IsUnavailable(lost.status())) << lost.status();
  EXPECT_TRUE(absl::IsUnavailable(stream->status()));
  EXPECT_EQ(stream->deadline(), absl::InfiniteFuture());
}

TEST_F(DecodeStreamTest, AnAnswerThatWasThereBeforeTheStreamWasLostCanBeTaken) {
  holder_->decode.CutStreams(1, 1);
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  const std::string queries = Rows(sizes_.query_bytes, 1);
  const uint64_t kept = stream->Send(Asking(id, queries, kPromptTokens));
  const uint64_t lost = stream->Send(Asking(id, queries, kPromptTokens));
  EXPECT_FALSE(stream->Await(lost).ok());
  EXPECT_TRUE(stream->Await(kept).ok());
}

TEST_F(DecodeStreamTest, AStepThatIsNotAnsweredInTimeEndsTheStream) {
  holder_->decode.Hold();
  ClientOptions options;
  options.target = holder_->cache.target();
  DecodeClient client(options, {&hasher_, &system_clock_, &random_, &wait_});
  const auto stream = client.OpenStream(&queue_, handle_.fingerprint(), {&parameters_, 1},
                                        {.step_timeout = absl::Milliseconds(200)});
  const SequenceId id = Open(holder_);
  const auto late = stream->Await(stream->Send(Asking(id, Rows(sizes_.query_bytes, 1), 30)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  EXPECT_THAT(late.status().message(), HasSubstr("200ms"));
}

TEST_F(DecodeStreamTest, AnOpeningThatTheNodeRefusesIsSaid) {
  const auto stream = holder_->decode_client->OpenStream(&queue_, Fingerprint(), {&parameters_, 1});
  const auto refused = stream->Await(stream->Send(Asking({}, Rows(sizes_.query_bytes, 1), 30)));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
}

TEST_F(DecodeStreamTest, ANodeThatIsNotThereIsUnavailable) {
  holder_->decode.Die();
  const auto stream = Stream(holder_);
  const auto lost = stream->Await(stream->Send(Asking({}, Rows(sizes_.query_bytes, 1), 30)));
  EXPECT_TRUE(absl::IsUnavailable(lost.status())) << lost.status();
}

TEST_F(DecodeStreamTest, AnswersThatBreakTheContractEndTheStream) {
  const SequenceId id = Open(holder_);
  const std::string queries = Rows(sizes_.query_bytes, 1);
  const std::vector<std::function<void(v1::DecodeResponse*)>> bends = {
      [](v1::DecodeResponse* response) { response->set_step(77); },
      [](v1::DecodeResponse* response) { response->add_results(); },
      [](v1::DecodeResponse* response) { response->clear_results(); },
      [](v1::DecodeResponse* response) { response->set_step(0); }};
  for (const auto& bend : bends) {
    const auto stream = Stream(holder_);
    holder_->decode.Bend(bend);
    const auto broken = stream->Await(stream->Send(Asking(id, queries, kPromptTokens)));
    EXPECT_TRUE(absl::IsInternal(broken.status())) << broken.status();
    EXPECT_THAT(broken.status().message(), HasSubstr("the node answered"));
  }
}

TEST_F(DecodeStreamTest, ClosingIsAgreedWithTheNode) {
  const auto stream = Stream(holder_);
  const SequenceId id = Open(holder_);
  ASSERT_TRUE(stream->Await(stream->Send(Asking(id, Rows(sizes_.query_bytes, 1), 30))).ok());
  stream->Close(absl::Seconds(60));
  EXPECT_TRUE(absl::IsCancelled(stream->status()));
}

TEST_F(DecodeStreamTest, ClosingDoesNotWaitForANodeThatHangs) {
  const auto stream = Stream(holder_);
  holder_->decode.Hold();
  (void)stream->Send(Asking(Open(holder_), Rows(sizes_.query_bytes, 1), 30));
  stream->Close(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsCancelled(stream->status()));
}

TEST_F(DecodeStreamTest, SequencesAreOpenedForkedCutAndClosed) {
  DecodeClient& client = *holder_->decode_client;
  const auto opened = client.OpenSequence(
      handle_, MakePrompt(), {.first_block = 2, .blocks_max = 3, .reserve_tokens = 10});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->pinned, (TokenRange{8, 20}));
  EXPECT_EQ(opened->reserved_tokens, 10);
  v1::DecodeRequest request = Asking(opened->id, Rows(sizes_.query_bytes, 1), 20);
  request.mutable_items(0)->set_keys(Rows(sizes_.key_bytes, 1));
  request.mutable_items(0)->set_values(Rows(sizes_.value_bytes, 1));
  request.mutable_items(0)->add_tokens(4);
  const auto stream = Stream(holder_);
  for (uint32_t layer = 0; layer < sizes_.layers; ++layer) {
    request.set_layer(layer);
    const auto results = stream->Await(stream->Send(request));
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(results->at(0).length_tokens(), 21);
  }
  EXPECT_EQ(client.GetSequence(opened->id)->length_tokens(), 21);
  const auto forked = client.ForkSequence(opened->id, 2, 5);
  ASSERT_TRUE(forked.ok()) << forked.status();
  EXPECT_THAT(forked->ids, SizeIs(2));
  EXPECT_EQ(forked->length_tokens, 21);
  EXPECT_EQ(*client.TruncateSequence(opened->id, 20), 20);
  EXPECT_EQ(client.GetSequence(forked->ids[0])->length_tokens(), 21);
  EXPECT_EQ(*client.ReleaseWindow(opened->id, 16, 0), 4);
  EXPECT_EQ(*client.CloseSequences(forked->ids), 2);
  EXPECT_EQ(*client.CloseSequences({&opened->id, 1}), 1);
  EXPECT_EQ(*client.CloseSequences({&opened->id, 1}), 0);
  EXPECT_EQ(holder_->decode.open_sequences(), 0);
}

TEST_F(DecodeStreamTest, ARefusedOpeningSaysWhenToTryAgainOrIsTriedAgainAsAnotherRequest) {
  const absl::Status full =
      WithRetryAfter(absl::ResourceExhaustedError("no room"), absl::Milliseconds(250));
  holder_->decode.FailOpens(2, full);
  const auto refused = holder_->decode_client->OpenSequence(handle_, MakePrompt());
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(RetryAfter(refused.status()), absl::Milliseconds(250));
  const auto opened =
      holder_->decode_client->OpenSequence(handle_, MakePrompt(), {.wait_when_exhausted = true});
  EXPECT_TRUE(opened.ok()) << opened.status();
  const std::vector<std::string> ids = holder_->decode.request_ids();
  ASSERT_THAT(ids, SizeIs(3));
  EXPECT_NE(ids[1], ids[2]);
  EXPECT_GE(wait_.waits().back(), absl::Milliseconds(250));
}

TEST_F(DecodeStreamTest, AnOpeningThatWasLostIsRepeatedAsTheSameRequest) {
  holder_->decode.FailOpens(1, absl::UnavailableError("gone for a moment"));
  ASSERT_TRUE(holder_->decode_client->OpenSequence(handle_, MakePrompt()).ok());
  const std::vector<std::string> ids = holder_->decode.request_ids();
  ASSERT_THAT(ids, SizeIs(2));
  EXPECT_EQ(ids[0], ids[1]);
}

TEST_F(DecodeStreamTest, ANodeWithoutMemoryForSequencesStillAttendsOverLeases) {
  holder_->decode.HaveNoMemory();
  const auto refused = holder_->decode_client->OpenSequence(handle_, MakePrompt());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(refused.status().message(), HasSubstr("--decode-memory"));
  const Prompt prompt = MakePrompt();
  const auto found = holder_->cache_client->Lookup(handle_, {&prompt, 1}, {.lease_readers = 1});
  ASSERT_TRUE(found.ok() && found->lease) << found.status();
  v1::AttendRequest request;
  request.set_fingerprint(std::string(handle_.fingerprint().view()));
  *request.mutable_parameters() = parameters_;
  v1::AttendItem* item = request.add_items();
  item->mutable_leased()->set_lease(std::string(found->lease->id().view()));
  item->mutable_leased()->set_blocks(kBlocks);
  item->set_position(kPromptTokens);
  item->set_rows(1);
  item->set_queries(Rows(sizes_.query_bytes, 1));
  const auto results = holder_->decode_client->Attend(request);
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectWhole(results->at(0), item->queries(), kPromptTokens);
}

}  // namespace
}  // namespace cairn::testing
