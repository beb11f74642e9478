#include "cache_node/store/token_table.h"

#include <algorithm>

#include "common/base/check.h"

namespace cairn::node {

Token* TokenTable::Add(std::unique_ptr<Token> token) {
  CAIRN_CHECK(HasRoom(token->blocks.size()));
  Token* added = token.get();
  ++open_;
  blocks_ += added->blocks.size();
  added->due = added->expires;
  CAIRN_CHECK(tokens_.emplace(added->id, std::move(token)).second);
  CAIRN_CHECK(due_.emplace(added->due, added->id).second);
  return added;
}

Token* TokenTable::OldestSettled() const {
  if (settled_.empty()) return nullptr;
  auto it = tokens_.find(settled_.begin()->second);
  CAIRN_CHECK(it != tokens_.end());
  return it->second.get();
}

void TokenTable::Counted(Token* token) {
  if (token->closing) return;
  CAIRN_CHECK(token->present + token->gone <= token->reserved);
  const std::pair<absl::Time, TokenId> place(token->born, token->id);
  if (token->present + token->gone == token->reserved) {
    settled_.insert(place);
  } else {
    settled_.erase(place);
  }
}

Token* TokenTable::Find(const TokenId& id, TenantIndex tenant, absl::Time now) const {
  Token* token = FindAny(id, now);
  return token == nullptr || token->tenant != tenant ? nullptr : token;
}

Token* TokenTable::FindAny(const TokenId& id, absl::Time now) const {
  auto it = tokens_.find(id);
  if (it == tokens_.end()) return nullptr;
  Token* token = it->second.get();
  return token->closing || now >= token->expires ? nullptr : token;
}

void TokenTable::Renew(Token* token, absl::Time now, absl::Duration life_max) {
  const absl::Time wanted = std::min(now + token->ttl, token->born + life_max);
  token->expires = std::max(token->expires, wanted);
}

Token* TokenTable::StepExpired(absl::Time now, bool* done) {
  *done = due_.empty() || due_.begin()->first > now;
  if (*done) return nullptr;
  auto it = tokens_.find(due_.begin()->second);
  CAIRN_CHECK(it != tokens_.end());
  Token* token = it->second.get();
  if (token->expires > now) {
    // It was renewed since it was put in order.
    due_.erase(due_.begin());
    token->due = token->expires;
    CAIRN_CHECK(due_.emplace(token->due, token->id).second);
    return nullptr;
  }
  MarkClosing(token);
  return token;
}

void TokenTable::MarkClosing(Token* token) {
  CAIRN_CHECK(!token->closing);
  token->closing = true;
  CAIRN_CHECK(due_.erase({token->due, token->id}) == 1);
  settled_.erase({token->born, token->id});
  CAIRN_CHECK(open_ > 0 && blocks_ >= token->blocks.size());
  --open_;
  blocks_ -= token->blocks.size();
}

void TokenTable::Erase(Token* token) {
  CAIRN_CHECK(token->closing);
  CAIRN_CHECK(tokens_.erase(TokenId(token->id)) == 1);
}

}  // namespace cairn::node
