#include "tests/cluster/decode/decode_fleet.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/block_hasher.h"
#include "tests/client/replay/model/worker.h"

namespace cairn::testing {

using replay::kBlockTokens;

namespace {

constexpr uint64_t kPagesMax = 1 << 12;  // That a worker holds itself.
constexpr uint64_t kChunkTokens = 64;
constexpr uint32_t kRowsFloat32 = 3;

ClientOptions OptionsFor(const std::string& target) {
  ClientOptions options;
  options.target = target;
  // Nodes that are gone are to be noticed soon.
  options.control_timeout = absl::Seconds(5);
  options.retry.attempts_max = 2;
  return options;
}

NamespaceHandle NamespaceOf(const replay::Transformer& model, uint64_t seed, Dtype dtype,
                            uint32_t slices) {
  const ScaleKind scales = dtype == Dtype::kInt8 ? ScaleKind::kPerTokenAndHead : ScaleKind::kNone;
  return *replay::ModelNamespace(
      model.shape(), seed, replay::ModelLayout(model.shape(), dtype, scales, kBlockTokens, slices));
}

}  // namespace

DecodeStory::DecodeStory(uint64_t seed, uint64_t prompt_tokens, Dtype dtype, uint32_t slices)
    : model(replay::MakeModel(seed)),
      tokens(replay::RandomPrompt(model.shape(), prompt_tokens, seed + 100)),
      name_space(NamespaceOf(model, seed, dtype, slices)),
      cold(replay::ColdPrefill::Run(&model, name_space, tokens).value()) {}

Prompt DecodeStory::MakePrompt() const {
  const Sha256BlockHasher hasher;
  const Region region{.scope = {.tenant = "public", .adapter = "", .salt = ""},
                      .tokens = tokens,
                      .external_ids = {}};
  return Prompt::Make(hasher, name_space, {&region, 1}).value();
}

DecodeWorker::DecodeWorker(const DecodeStory& story, const ClientParts& parts, uint32_t ranks,
                           const SessionOptions& options)
    : story_(story) {
  const uint32_t slices = story.name_space.fields().layout.slices / ranks;
  std::vector<replay::ServedAttention*> attentions;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    v1::AttentionParameters parameters;
    parameters.set_first_slice(rank * slices);
    parameters.set_slices(slices);
    parameters.set_query_heads(story.model.shape().query_heads / ranks);
    parameters.set_row_dtype(kRowsFloat32);
    parameters.set_softmax_scale(story.model.softmax_scale());
    Rank& made = ranks_.emplace_back();
    made.session = DecodeSession::Make(story.name_space, {&parameters, 1}, parts, options).value();
    made.attention = replay::ServedAttention::Make(made.session.get(), kPagesMax).value();
    attentions.push_back(made.attention.get());
  }
  worker_ = std::make_unique<replay::ServedWorker>(&story.model, attentions);
}

void DecodeWorker::Open(const std::vector<PartWish>& parts) {
  for (Rank& rank : ranks_) {
    const absl::Status status = rank.session->Open(kSequence, story_.MakePrompt(), parts);
    ASSERT_TRUE(status.ok()) << status;
  }
  worker_->Begin(kSequence, story_.tokens);
}

std::vector<uint32_t> DecodeWorker::Tell(uint64_t steps, const std::function<void(uint64_t)>& at) {
  const absl::StatusOr<std::vector<float>> logits = worker_->Prefill(kSequence, kChunkTokens);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  uint64_t token = 0;
  const auto decoded = worker_->Decode(kSequence, *logits, steps, [&](uint32_t) {
    if (at != nullptr) at(++token);
  });
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? *decoded : std::vector<uint32_t>();
}

std::vector<std::vector<float>> DecodeWorker::Forced(const std::vector<uint32_t>& tokens) {
  std::vector<std::vector<float>> all;
  absl::StatusOr<std::vector<float>> logits = worker_->Prefill(kSequence, kChunkTokens);
  for (size_t i = 0;; ++i) {
    EXPECT_TRUE(logits.ok()) << logits.status();
    if (!logits.ok()) return all;
    all.push_back(*std::move(logits));
    if (i == tokens.size()) return all;
    const replay::StepTokens step = {kSequence, story_.tokens.size() + i, {&tokens[i], 1}};
    logits = worker_->Step({&step, 1});
  }
}

void DecodeFleetTest::TearDown() {
  if (!HasFailure()) return;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    std::cerr << "--- node " << i << "\n" << nodes_[i].process->Log() << "\n";
  }
}

void DecodeFleetTest::StartProcess(Node* node, const std::string& listen) {
  std::vector<std::string> flags = node->flags;
  if (!listen.empty()) flags.push_back(absl::StrCat("--listen=", listen));
  absl::StatusOr<std::unique_ptr<ServerProcess>> started =
      StartNode({.program = CAIRN_BIN_DIR "/cairn-node", .flags = std::move(flags)});
  ASSERT_TRUE(started.ok()) << started.status();
  node->process = *std::move(started);
}

void DecodeFleetTest::AddNodes(size_t count, const std::vector<std::string>& flags) {
  for (size_t i = 0; i < count; ++i) {
    Node node;
    node.flags = {absl::StrCat("--node-id=node-", nodes_.size()), "--host-memory=64MiB",
                  "--decode-memory=64MiB"};
    node.flags.insert(node.flags.end(), flags.begin(), flags.end());
    ASSERT_NO_FATAL_FAILURE(StartProcess(&node, ""));
    const ClientOptions options = OptionsFor(node.process->address());
    node.cache = std::make_unique<CacheNodeClient>(options, parts());
    node.decode = std::make_unique<DecodeClient>(options, parts());
    nodes_.push_back(std::move(node));
  }
}

void DecodeFleetTest::RestartNode(size_t node) {
  const std::string address = process(node).address();
  nodes_[node].process.reset();
  StartProcess(&nodes_[node], address);
}

void DecodeFleetTest::Put(const DecodeStory& story, size_t node) {
  ASSERT_TRUE(
      cache(node).RegisterNamespace(story.name_space.name(), story.name_space.fields()).ok());
  const absl::StatusOr<PutResult> put = story.cold->Put(&cache(node), story.MakePrompt());
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_TRUE(put->complete());
}

v1::DescribeResponse DecodeFleetTest::Describe(size_t node) {
  const absl::StatusOr<v1::DescribeResponse> described = cache(node).Describe();
  EXPECT_TRUE(described.ok()) << described.status();
  return described.value_or(v1::DescribeResponse());
}

void DecodeFleetTest::ExpectAllIsBack(size_t node) {
  const absl::Time deadline = absl::Now() + kSoon;
  v1::DescribeResponse described = Describe(node);
  // A stream that ends lets go a moment later.
  while (absl::Now() < deadline &&
         (described.decode().running() > 0 || described.pins() > 0 ||
          described.decode().bytes_free() < described.decode().bytes_max())) {
    described = Describe(node);
  }
  EXPECT_EQ(described.decode().running(), 0u);
  EXPECT_EQ(described.decode().waiting(), 0u);
  EXPECT_EQ(described.decode().tokens_reserved(), 0u);
  EXPECT_EQ(described.decode().bytes_free(), described.decode().bytes_max());
  EXPECT_EQ(described.pins(), 0u);
}

PartWish DecodeFleetTest::Wish(uint32_t begin, uint32_t end, std::vector<DecodeNode> holders,
                               uint64_t reserve_tokens) {
  PartWish wish;
  wish.first_block = begin;
  wish.blocks = end - begin;
  wish.holders = std::move(holders);
  wish.reserve_tokens = reserve_tokens;
  return wish;
}

}  // namespace cairn::testing
