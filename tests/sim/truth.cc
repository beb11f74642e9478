#include "tests/sim/truth.h"

#include <google/protobuf/message.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"

namespace cairn::sim {
namespace {

template <typename Message>
const Message* As(const google::protobuf::Message& message) {
  return google::protobuf::DynamicCastToGenerated<Message>(&message);
}

std::vector<BlockKey> Keys(const std::string& bytes) {
  absl::StatusOr<std::vector<BlockKey>> keys = KeysFromProto(bytes, "keys", SIZE_MAX);
  CAIRN_CHECK_OK(keys.status());
  return *std::move(keys);
}

}  // namespace

std::vector<std::vector<BlockKey>> KeysOfLookup(const PromptBook& book,
                                                const v1::LookupRequest& request) {
  std::vector<std::vector<BlockKey>> all;
  const NamespaceHandle* name_space =
      book.FindNamespace(*Fingerprint::FromBytes(request.fingerprint()));
  for (const v1::Prompt& prompt : request.prompts()) {
    if (prompt.regions().empty()) {
      all.push_back(Keys(prompt.keys()));
      continue;
    }
    CAIRN_CHECK(name_space != nullptr);
    const absl::StatusOr<PromptFields> fields = PromptFromProto(prompt);
    CAIRN_CHECK_OK(fields.status());
    const absl::StatusOr<std::vector<BlockKey>> keys =
        PromptKeys(Sha256BlockHasher(), name_space->key_rules(), fields->regions, fields->extras);
    CAIRN_CHECK_OK(keys.status());
    all.push_back(*keys);
  }
  return all;
}

Truth::Truth(const PromptBook* book, EventLog* log, GuardedNow guarded_now)
    : book_(book), log_(log), guarded_now_(std::move(guarded_now)) {}

void Truth::Note(const Life& life, const char* what, const BlockName& block) const {
  log_->Note(absl::StrCat("node-", life.place, what, ToHex(block.key.view().substr(0, 4)), " of ",
                          block.tenant));
}

void Truth::OnNodeCall(const SeenCall& call) {
  if (!call.status.ok()) return;
  if (const auto* reserve = As<v1::ReserveRequest>(call.request)) {
    return Take(call, *reserve, *As<v1::ReserveResponse>(call.response));
  }
  if (const auto* commit = As<v1::CommitRequest>(call.request)) {
    return Take(call, *commit, *As<v1::CommitResponse>(call.response));
  }
  if (const auto* lookup = As<v1::LookupRequest>(call.request)) {
    return Take(call, *lookup, *As<v1::LookupResponse>(call.response));
  }
  if (const auto* end = As<v1::EndLeaseRequest>(call.request)) return Take(call, *end);
  TakeRemoval(call);
}

void Truth::Take(const SeenCall& call, const v1::ReserveRequest& request,
                 const v1::ReserveResponse& response) {
  Node& node = nodes_[call.server];
  if (response.token().empty() || node.tokens.contains(response.token())) return;
  Token token;
  token.tenant = call.caller.tenant;
  token.fingerprint = *Fingerprint::FromBytes(request.fingerprint());
  token.keys = Keys(request.keys());
  const PayloadMap& map = book_->FindNamespace(token.fingerprint)->payload_map();
  std::set<size_t> required;
  for (const PayloadMap::Part& part : map.parts()) {
    for (size_t layer = 0; part.required && layer < part.layers; ++layer) {
      required.insert(part.first_segment + layer);
    }
  }
  for (const v1::ReserveAnswer& answer : response.answers()) {
    token.reserved.push_back(answer.outcome() == v1::RESERVE_OUTCOME_RESERVED);
    token.missing.push_back(required);
  }
  node.tokens.emplace(response.token(), std::move(token));
}

void Truth::Take(const SeenCall& call, const v1::CommitRequest& request,
                 const v1::CommitResponse& response) {
  Node& node = nodes_[call.server];
  const auto found = node.tokens.find(request.token());
  if (found == node.tokens.end()) return;
  Token& token = found->second;
  const PayloadMap& map = book_->FindNamespace(token.fingerprint)->payload_map();
  std::set<int> refused;
  for (const v1::PieceError& error : response.errors())
    refused.insert(static_cast<int>(error.piece()));
  for (int i = 0; i < request.pieces_size(); ++i) {
    const v1::Piece& piece = request.pieces(i);
    if (refused.contains(i) || piece.block() >= token.keys.size() ||
        !token.reserved[piece.block()]) {
      continue;
    }
    std::set<size_t>& missing = token.missing[piece.block()];
    const bool was_missing = !missing.empty();
    for (uint32_t layer = 0; layer < static_cast<uint32_t>(piece.digests_size()); ++layer) {
      missing.erase(*map.FindSegment({piece.group(), piece.slice(), piece.layer() + layer}));
    }
    if (!was_missing || !missing.empty()) continue;
    const BlockName block{token.fingerprint, token.tenant, token.keys[piece.block()]};
    Note(call.server, " commits ", block);
    node.there.insert(block);
    node.removed.erase(block);
    ++blocks_committed_;
  }
}

void Truth::Take(const SeenCall& call, const v1::LookupRequest& request,
                 const v1::LookupResponse& response) {
  Node& node = nodes_[call.server];
  if (response.lease().empty() || node.leases.contains(response.lease())) return;
  Lease lease;
  lease.tenant = call.caller.tenant;
  lease.fingerprint = *Fingerprint::FromBytes(request.fingerprint());
  lease.reader_ended.resize(request.lease().readers());
  const std::vector<std::vector<BlockKey>> prompts = KeysOfLookup(*book_, request);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const v1::PromptResult& result = response.results(static_cast<int>(i));
    for (size_t block = 0; block < result.blocks_leased() && block < prompts[i].size(); ++block) {
      lease.keys.insert(prompts[i][block]);
    }
  }
  lease.certain_until = guarded_now_(call.server) + absl::Milliseconds(response.lease_ttl_ms());
  log_->Note(absl::StrCat("node-", call.server.place, " leases ",
                          ToHex(response.lease().substr(0, 4)), " over ", lease.keys.size(),
                          " blocks to ", lease.tenant, " for ", response.lease_ttl_ms(), " ms"));
  node.leases.emplace(response.lease(), std::move(lease));
}

void Truth::Take(const SeenCall& call, const v1::EndLeaseRequest& request) {
  Node& node = nodes_[call.server];
  const auto found = node.leases.find(request.lease());
  if (found == node.leases.end() || found->second.tenant != call.caller.tenant) return;
  if (request.reader() < found->second.reader_ended.size()) {
    found->second.reader_ended[request.reader()] = true;
  }
}

template <typename Match>
void Truth::Remove(const Life& life, const Match& match) {
  Node* const node = &nodes_[life];
  for (auto it = node->there.begin(); it != node->there.end();) {
    if (!match(*it)) {
      ++it;
      continue;
    }
    for (auto& [id, lease] : node->leases) {
      if (lease.keys.contains(it->key)) lease.doubtful = true;
    }
    Note(life, " removes ", *it);
    node->removed.insert(*it);
    it = node->there.erase(it);
  }
}

// What is reserved in the scope goes with it: its token does not cover it any more.
void Truth::VoidReserved(Node* node, const Fingerprint& fingerprint, const std::string& tenant,
                         const BlockKey& scope_digest) const {
  for (auto& [id, token] : node->tokens) {
    if (token.fingerprint != fingerprint || token.tenant != tenant) continue;
    for (size_t i = 0; i < token.keys.size(); ++i) {
      if (book_->Find(token.keys[i])->scope_digest == scope_digest) token.reserved[i] = false;
    }
  }
}

void Truth::TakeRemoval(const SeenCall& call) {
  Node& node = nodes_[call.server];
  const std::string& tenant = call.caller.tenant;
  if (const auto* erase = As<v1::DeleteRequest>(call.request)) {
    const Fingerprint fingerprint = *Fingerprint::FromBytes(erase->fingerprint());
    for (const BlockKey& key : Keys(erase->keys())) {
      Remove(call.server, [&](const BlockName& block) {
        return block.fingerprint == fingerprint && block.tenant == tenant && block.key == key;
      });
    }
  } else if (const auto* clear = As<v1::ClearScopeRequest>(call.request)) {
    const Fingerprint fingerprint = *Fingerprint::FromBytes(clear->fingerprint());
    const BlockKey digest =
        node::ScopeDigest({tenant, clear->scope().adapter(), clear->scope().salt()});
    Remove(call.server, [&](const BlockName& block) {
      return block.fingerprint == fingerprint && block.tenant == tenant &&
             book_->Find(block.key)->scope_digest == digest;
    });
    VoidReserved(&node, fingerprint, tenant, digest);
  } else if (const auto* retire = As<v1::RetireNamespaceRequest>(call.request)) {
    const Fingerprint fingerprint = *Fingerprint::FromBytes(retire->fingerprint());
    Remove(call.server, [&](const BlockName& block) { return block.fingerprint == fingerprint; });
    for (auto& [id, lease] : node.leases) lease.doubtful |= lease.fingerprint == fingerprint;
    std::erase_if(node.tokens,
                  [&](const auto& token) { return token.second.fingerprint == fingerprint; });
  } else if (const auto* report = As<v1::ReportMismatchRequest>(call.request)) {
    if (!As<v1::ReportMismatchResponse>(call.response)->confirmed()) return;
    const Fingerprint fingerprint = *Fingerprint::FromBytes(report->fingerprint());
    const BlockKey key = *BlockKey::FromBytes(report->segment().key());
    Remove(call.server, [&](const BlockName& block) {
      return block.fingerprint == fingerprint && block.key == key;
    });
  }
}

void Truth::OnPulled(const SeenPull& pull) {
  Node& node = nodes_[pull.node];
  const BlockName block{pull.fingerprint, pull.tenant, pull.key};
  Note(pull.node, " pulls ", block);
  node.there.insert(block);
  node.removed.erase(block);
}

void Truth::OnDamaged(const Life& /*node*/, const BlockKey& key) { damaged_.insert(key); }

bool Truth::MayBeThere(const Life& node, const BlockName& block) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.there.contains(block);
}

bool Truth::WasRemoved(const Life& node, const BlockName& block) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.removed.contains(block);
}

const Truth::Lease* Truth::FindLease(const Life& node, const std::string& lease) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  const auto it = found->second.leases.find(lease);
  return it == found->second.leases.end() ? nullptr : &it->second;
}

const Truth::Token* Truth::FindToken(const Life& node, const std::string& token) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return nullptr;
  const auto it = found->second.tokens.find(token);
  return it == found->second.tokens.end() ? nullptr : &it->second;
}

std::vector<std::string> Truth::LeasesOf(const Life& node) const {
  std::vector<std::string> ids;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return ids;
  for (const auto& [id, lease] : found->second.leases) ids.push_back(id);
  return ids;
}

std::vector<std::string> Truth::TokensOf(const Life& node) const {
  std::vector<std::string> ids;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return ids;
  for (const auto& [id, token] : found->second.tokens) ids.push_back(id);
  return ids;
}

}  // namespace cairn::sim
