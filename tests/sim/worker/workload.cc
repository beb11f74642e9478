#include "tests/sim/worker/workload.h"

#include <utility>

#include "common/rpc/caller_identity.h"

namespace cairn::sim {
namespace {

constexpr const char* kTenants[] = {"acme", "globex"};
constexpr const char* kSalts[] = {"", "salt"};
constexpr uint32_t kSharedPrompts = 3;
constexpr size_t kSharedBlocks = 3;
constexpr size_t kOpeningBlocks = 2;
constexpr uint32_t kOpenings = 2;
constexpr uint64_t kTurnTokensMost = 50;
// The operator's own requests, which put the shared prompts there.
constexpr uint32_t kPublicRequestChance = 1000;
constexpr uint32_t kSharedChance = 4000;

std::vector<uint32_t> Tokens(uint32_t first, size_t count) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<uint32_t>(i);
  return tokens;
}

}  // namespace

Workload::Workload(const WorkloadOptions& options, uint64_t seed, PromptBook* book)
    : options_(options), dice_(seed, "workload"), book_(book) {
  for (size_t i = 0; i < options.conversations; ++i) conversations_.push_back(Begin());
}

SimRegion Workload::SharedRegion(uint32_t number) const {
  return {
      .scope = {.tenant = kPublicTenant, .adapter = "", .salt = ""},
      .tokens = Tokens(number * 1000, kSharedBlocks * book_->namespaces().front().block_tokens())};
}

Workload::Conversation Workload::Begin() {
  Conversation conversation;
  conversation.name_space = dice_.Below(book_->namespaces().size());
  if (dice_.Chance(kSharedChance)) {
    conversation.shared = static_cast<uint32_t>(dice_.Between(1, kSharedPrompts));
  }
  conversation.own.scope = {
      .tenant = kTenants[dice_.Below(2)], .adapter = "", .salt = kSalts[dice_.Below(2)]};
  const auto opening = static_cast<uint32_t>(dice_.Below(kOpenings));
  conversation.own.tokens =
      Tokens(100'000 + opening * 1000, kOpeningBlocks * book_->namespaces().front().block_tokens());
  return conversation;
}

void Workload::Grow(Conversation* conversation) {
  const size_t most = options_.blocks_max * book_->namespaces().front().block_tokens();
  const uint64_t more = dice_.Between(1, kTurnTokensMost);
  if (conversation->own.tokens.size() + more > most) {
    *conversation = Begin();
    return;
  }
  for (uint64_t i = 0; i < more; ++i) conversation->own.tokens.push_back(next_token_++);
}

const SimPrompt* Workload::Next() {
  if (handed_out_ == options_.requests) return nullptr;
  ++handed_out_;
  if (dice_.Chance(kPublicRequestChance)) {
    const auto number = static_cast<uint32_t>(dice_.Between(1, kSharedPrompts));
    return book_->Add(dice_.Below(book_->namespaces().size()), {SharedRegion(number)});
  }
  Conversation& conversation = conversations_[dice_.Below(conversations_.size())];
  Grow(&conversation);
  std::vector<SimRegion> regions;
  if (conversation.shared > 0) regions.push_back(SharedRegion(conversation.shared));
  regions.push_back(conversation.own);
  return book_->Add(conversation.name_space, std::move(regions));
}

const SimPrompt* Workload::Fresh(size_t name_space, const std::string& tenant, size_t blocks) {
  const size_t count = blocks * book_->namespaces()[name_space].block_tokens();
  const uint32_t first = next_token_;
  next_token_ += static_cast<uint32_t>(count);
  return book_->Add(name_space, {{.scope = {.tenant = tenant, .adapter = "", .salt = ""},
                                  .tokens = Tokens(first, count)}});
}

void Workload::Ended(const RequestJob::Outcome& outcome) {
  ++tally_.ended;
  tally_.blocks += outcome.blocks;
  tally_.hit_blocks += outcome.hit_blocks;
  tally_.fallbacks += outcome.fallbacks;
  if (!outcome.cached) ++tally_.uncached;
}

}  // namespace cairn::sim
