// Clients that mean harm: requests of random fields, most of them beyond a bound; messages that are
// small on the wire and large in memory. The node must refuse each, serve others as before, and
// have nothing left of it at the end: its destructors check that no page, pin or byte is.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache_node/decode/engine/item_checks.h"
#include "cache_node/service/decode_messages.h"
#include "cache_node/service/decode_slot.h"
#include "common/wire/decode_limits.h"
#include "tests/cache_node/service/decode_fixture.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBig[] = {0,
                             1,
                             2,
                             15,
                             16,
                             17,
                             31,
                             32,
                             47,
                             48,
                             uint64_t{1} << 26,
                             (uint64_t{1} << 26) + 1,
                             (uint64_t{1} << 40) - 1,
                             uint64_t{1} << 40,
                             uint64_t{1} << 63,
                             std::numeric_limits<uint64_t>::max() - 1,
                             std::numeric_limits<uint64_t>::max()};
constexpr float kNumbers[] = {0,       -0.0f,    1,        -1,        1e-45f, 1e-38f,
                              3.4e38f, -3.4e38f, INFINITY, -INFINITY, NAN,    0.5f};

class DecodeHostileTest : public DecodeFixture {
 protected:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  uint64_t Big() { return kBig[Below(std::size(kBig))]; }
  uint32_t Small() { return static_cast<uint32_t>(Big()); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }

  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  std::string Id() {
    const std::string& known = ids_[Below(ids_.size())];
    return Chance(90) ? known : Bytes(Chance(50) ? 16 : Below(40));
  }
  // Nearly always of the right size; numbers that are mostly fine.
  std::string Rows(uint64_t count) {
    const bool tame = Chance(70);
    std::string rows;
    for (uint64_t i = 0; i < count; ++i) {
      const float number = tame ? 0.25f : kNumbers[Below(std::size(kNumbers))];
      rows.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    if (Chance(3)) rows += 'x';
    return rows;
  }

  v1::AttendItem Item() {
    v1::AttendItem item;
    if (Chance(30)) {
      item.mutable_leased()->set_lease(Chance(90) ? lease_ : Bytes(Below(20)));
      if (Chance(20)) item.mutable_leased()->set_prompt(Small());
      if (Chance(50)) item.mutable_leased()->set_first_block(Small());
      if (Chance(50)) item.mutable_leased()->set_blocks(Small());
    } else if (Chance(97)) {
      item.set_sequence(Id());
    }
    const uint64_t rows = Chance(90) ? 1 + Below(20) : Small();
    const uint64_t sent = std::min<uint64_t>(rows, 20);
    item.set_position(Chance(80) ? Below(80) : Big());
    item.set_rows(static_cast<uint32_t>(rows));
    if (Chance(80)) item.set_queries(Rows(sent * kQueryHeads * kDim));
    if (item.has_leased() ? Chance(5) : Chance(70)) {
      item.set_keys(Rows(sent * kKvHeads * kDim));
      item.set_values(Rows(sent * kKvHeads * kDim));
      for (uint64_t i = 0; Chance(99) && i < sent; ++i) item.add_tokens(static_cast<uint32_t>(i));
    }
    return item;
  }

  void CallAnything() {
    const auto context = CallerContext();
    switch (Below(6)) {
      case 0: {
        v1::ForkSequenceRequest request;
        request.set_sequence(Id());
        request.set_count(Chance(90) ? 1 + static_cast<uint32_t>(Below(3)) : Small());
        request.set_reserve_tokens(Chance(80) ? Below(60) : Big());
        request.set_request_id(Chance(80) ? std::string() : Bytes(Chance(70) ? 16 : Below(20)));
        v1::ForkSequenceResponse response;
        if (!decode_->ForkSequence(context.get(), request, &response).ok()) return;
        for (size_t at = 0; at < response.sequences().size(); at += 16) {
          ids_.push_back(response.sequences().substr(at, 16));
        }
        return;
      }
      case 1: {
        v1::TruncateSequenceRequest request;
        request.set_sequence(Id());
        request.set_length_tokens(Chance(80) ? Below(80) : Big());
        v1::TruncateSequenceResponse response;
        (void)decode_->TruncateSequence(context.get(), request, &response);
        return;
      }
      case 2: {
        v1::ReleaseWindowRequest request;
        request.set_sequence(Id());
        request.set_before_token(Chance(80) ? Below(80) : Big());
        request.set_sink_tokens(Chance(80) ? 0 : Big());
        v1::ReleaseWindowResponse response;
        (void)decode_->ReleaseWindow(context.get(), request, &response);
        return;
      }
      case 3: {
        v1::GetSequenceRequest request;
        request.set_sequence(Id());
        v1::GetSequenceResponse response;
        (void)decode_->GetSequence(context.get(), request, &response);
        return;
      }
      case 4: {
        v1::CloseSequencesRequest request;
        request.set_sequences(Id() + (Chance(20) ? Id() : ""));
        v1::CloseSequencesResponse response;
        (void)decode_->CloseSequences(context.get(), request, &response);
        return;
      }
      default:
        OpenAnything();
    }
  }

  void OpenAnything() {
    v1::OpenSequenceRequest request = OpenRequestOf(prompt_.tokens, Chance(80) ? Below(60) : Big());
    const auto few = static_cast<uint32_t>(Below(5));
    if (Chance(50)) request.set_first_block(Chance(80) ? few : Small());
    if (Chance(50)) request.set_blocks_max(Chance(80) ? few : Small());
    if (Chance(10)) request.set_idle_ms(Small());
    if (Chance(5)) request.mutable_prompt()->add_regions();
    if (Chance(5)) request.mutable_prompt()->mutable_regions(0)->clear_tokens();
    if (Chance(5)) request.mutable_prompt()->mutable_regions(0)->add_external_ids("x");
    if (Chance(5)) *request.mutable_prompt()->add_regions() = request.prompt().regions(0);
    v1::OpenSequenceResponse response;
    if (Open(request, &response).ok()) ids_.push_back(response.sequence());
  }

  std::vector<v1::AttentionParameters> SomeParameters() const {
    std::vector<v1::AttentionParameters> all(5, Parameters());
    all[1].set_window_tokens(20);
    all[1].set_sink_tokens(4);
    all[2].set_window_tokens(uint64_t{1} << 40);
    all[2].set_sink_tokens(uint64_t{1} << 40);
    all[3].set_logit_soft_cap(1e-45f);
    all[3].set_softmax_scale(3e38f);
    all[4].set_window_tokens(1);
    return all;
  }

  std::mt19937_64 random_{11};
  TestPrompt prompt_;
  std::string lease_;
  std::vector<std::string> ids_;
};

TEST_F(DecodeHostileTest, RandomRequestsAreAnsweredAndLeaveNothing) {
  prompt_ = PutPrompt(1, 3);
  lease_ = Lease(prompt_);
  ids_ = {OpenSequence(prompt_.tokens, 40), OpenSequence({0}, 60)};
  std::unique_ptr<TestStream> stream;
  uint64_t fine = 0, refused = 0;
  for (uint64_t step = 1; step <= 1500; ++step) {
    if (stream == nullptr) {
      stream = std::make_unique<TestStream>(decode_.get(), CallerContext());
      ASSERT_TRUE(stream->SendOpen(fingerprint_, SomeParameters()));
      ASSERT_TRUE(stream->Receive(0).empty());
    }
    std::vector<v1::AttendItem> items(Below(5));
    for (v1::AttendItem& item : items) item = Item();
    const uint32_t layer = Chance(95) ? static_cast<uint32_t>(Below(kLayers)) : Small();
    const uint32_t parameters = Chance(95) ? static_cast<uint32_t>(Below(5)) : Small();
    ASSERT_TRUE(stream->Send(step, layer, items, parameters));
    if (Chance(3)) {
      stream = nullptr;  // Lost with the step under way.
    } else {
      const auto results = stream->Receive(step);
      ASSERT_EQ(results.size(), items.size());
      for (const v1::AttendResult& result : results) ++(result.code() == 0 ? fine : refused);
    }
    if (Chance(40)) CallAnything();
    if (ids_.size() > 40) ids_.erase(ids_.begin() + 2, ids_.begin() + 20);
  }
  EXPECT_GT(fine, 100u);
  EXPECT_GT(refused, 300u);
  stream = nullptr;
  // Another is served as if nothing had been.
  v1::AttendResponse response;
  const v1::AttendItem item = LeasedItem(lease_, 50);
  ASSERT_TRUE(Attend({item}, &response).ok());
  ExpectAnswer(response.results(0), item, 0, prompt_.tokens);
}

TEST_F(DecodeHostileTest, ARequestOfCountlessItemsEndsItsStreamBeforeItTakesMemory) {
  v1::AttendRequest request;
  request.set_fingerprint(fingerprint_);
  *request.mutable_parameters() = Parameters();
  for (uint32_t i = 0; i < 400'000; ++i) request.add_items();
  v1::AttendResponse response;
  const grpc::Status status = decode_->Attend(CallerContext().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("items: 400000"));

  const auto stream = NewStream();
  v1::DecodeRequest step;
  step.set_step(1);
  *step.mutable_items() = request.items();
  ASSERT_TRUE(stream->Send(step));
  v1::DecodeResponse answer;
  EXPECT_FALSE(stream->ReceiveAny(&answer));
  const grpc::Status ended = stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ended.error_message(), HasSubstr("items: 400000"));
}

// What a wrong item brings is in memory as well.
TEST_F(DecodeHostileTest, WrongItemsAreChargedToo) {
  v1::DecodeRequest request;
  v1::AttendItem& item = *request.add_items();
  item.mutable_leased()->set_lease(std::string(16, 'l'));
  item.set_keys(std::string(1 << 20, 'k'));
  DecodeSlot slot;
  slot.shape = &shape_;
  ItemsFromProto(request.items(), true, &slot, slot.response.mutable_results());
  CheckItems(&slot);
  EXPECT_FALSE(slot.results[0].status.ok());
  EXPECT_GE(slot.request_bytes, uint64_t{1} << 20);
}

TEST_F(DecodeHostileTest, ASlotKeepsLittleOfWhateverItHeld) {
  DecodeSlot slot;
  slot.request.add_items()->set_keys(std::string(1 << 20, 'k'));
  slot.Clear();
  EXPECT_LE(slot.request.SpaceUsedLong(), DecodeSlot::kKeptBytes);
  for (int i = 0; i < 100'000; ++i) {
    slot.request.GetReflection()->MutableUnknownFields(&slot.request)->AddVarint(1000, 1);
  }
  slot.Clear();
  EXPECT_EQ(slot.request.GetReflection()->GetUnknownFields(slot.request).field_count(), 0);
  EXPECT_LE(slot.request.SpaceUsedLong(), DecodeSlot::kKeptBytes);
}

}  // namespace
}  // namespace cairn::node
