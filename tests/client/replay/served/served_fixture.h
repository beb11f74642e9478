// ServedTest: a model whose prompt a first worker computed and put, and a second one that decodes
// over nodes which hold it; its tokens are held against those of the first one alone.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/replay/served/cold_prefill.h"
#include "client/replay/served/served_worker.h"
#include "common/base/check.h"
#include "common/identity/block_hasher.h"
#include "tests/client/cpp/decode/fake_holder.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/replay/model/worker.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::replay {

class ServedTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPromptTokens = 70;  // Four blocks of 16, and some.
  static constexpr uint32_t kFullBlocks = 4;
  static constexpr uint64_t kSteps = 40;

  explicit ServedTest(uint32_t slices = 1)
      : model_(MakeModel(11)),
        prompt_tokens_(RandomPrompt(model_.shape(), kPromptTokens, 5)),
        handle_(ModelNamespace(model_.shape(), 11,
                               ModelLayout(model_.shape(), Dtype::kFloat32, ScaleKind::kNone,
                                           kBlockTokens, slices))
                    .value()) {
    cold_ = ColdPrefill::Run(&model_, handle_, prompt_tokens_).value();
    expected_ = cold_->Decode(kSteps).value().tokens;
  }

  ClientParts parts() { return {&hasher_, &clock_, &random_, &wait_}; }

  Prompt MakePrompt() {
    const Region region{.scope = {"acme", "", ""}, .tokens = prompt_tokens_, .external_ids = {}};
    return Prompt::Make(hasher_, handle_, {&region, 1}).value();
  }

  // A node that the first worker put its blocks on.
  testing::FakeHolder* Holder() {
    holders_.push_back(std::make_unique<testing::FakeHolder>(handle_, parts()));
    testing::FakeHolder* const holder = holders_.back().get();
    CAIRN_CHECK(cold_->Put(holder->cache_client.get(), MakePrompt()).value().complete());
    return holder;
  }

  static DecodeNode NodeOf(const testing::FakeHolder* holder) {
    return {holder->decode_client.get(), holder->cache_client.get()};
  }
  static PartWish Wish(uint32_t begin, uint32_t end, std::vector<DecodeNode> holders,
                       uint64_t reserve_tokens = 0) {
    PartWish wish;
    wish.first_block = begin;
    wish.blocks = end - begin;
    wish.holders = std::move(holders);
    wish.reserve_tokens = reserve_tokens;
    return wish;
  }

  // A worker of so many ranks.
  void MakeWorker(uint32_t ranks = 1) {
    worker_.reset();
    ranks_.clear();
    const uint32_t slices = handle_.fields().layout.slices / ranks;
    std::vector<ServedAttention*> attentions;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      v1::AttentionParameters parameters;
      parameters.set_first_slice(rank * slices);
      parameters.set_slices(slices);
      parameters.set_query_heads(model_.shape().query_heads / ranks);
      parameters.set_row_dtype(3);
      parameters.set_softmax_scale(model_.softmax_scale());
      Rank& made = ranks_.emplace_back();
      made.session = DecodeSession::Make(handle_, {&parameters, 1}, parts()).value();
      made.attention = ServedAttention::Make(made.session.get(), 1 << 10).value();
      attentions.push_back(made.attention.get());
    }
    worker_ = std::make_unique<ServedWorker>(&model_, attentions);
  }

  // The second worker, over these parts at all ranks.
  void Open(const std::vector<PartWish>& parts, uint32_t ranks = 1) {
    MakeWorker(ranks);
    for (Rank& rank : ranks_) {
      const absl::Status status = rank.session->Open(kSequence, MakePrompt(), parts);
      ASSERT_TRUE(status.ok()) << status;
    }
    worker_->Begin(kSequence, prompt_tokens_);
  }

  // Prefill and decode; `at` is called before each token with its number.
  std::vector<uint32_t> Tell(const std::function<void(uint64_t)>& at = nullptr) {
    const absl::StatusOr<std::vector<float>> logits = worker_->Prefill(kSequence, 64);
    EXPECT_TRUE(logits.ok()) << logits.status();
    if (!logits.ok()) return {};
    uint64_t token = 0;
    const auto decoded = worker_->Decode(kSequence, *logits, kSteps, [&](uint32_t) {
      if (at != nullptr) at(++token);
    });
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return decoded.ok() ? *decoded : std::vector<uint32_t>();
  }

  struct Rank {
    std::unique_ptr<DecodeSession> session;
    std::unique_ptr<ServedAttention> attention;
  };

  Transformer model_;
  std::vector<uint32_t> prompt_tokens_;
  NamespaceHandle handle_;
  testing::FakeClock clock_;
  testing::FakeWait wait_{&clock_};
  testing::SeededRandom random_{7};
  Sha256BlockHasher hasher_;
  std::unique_ptr<ColdPrefill> cold_;
  std::vector<uint32_t> expected_;
  std::vector<std::unique_ptr<testing::FakeHolder>> holders_;
  std::vector<Rank> ranks_;
  std::unique_ptr<ServedWorker> worker_;
};

}  // namespace cairn::replay
