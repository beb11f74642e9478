#include "tests/bench/store_load.h"

#include <cstring>
#include <random>

#include "cache_node/store/scope_digest.h"
#include "common/base/check.h"
#include "common/base/give_way.h"
#include "common/identity/segment_digest.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kWriter = 1;

}  // namespace

StoreLoad::StoreLoad(node::BlockStore* store, const Fingerprint& fingerprint)
    : store_(store), fingerprint_(fingerprint), map_(store->FindPayloadMap(fingerprint)) {
  CAIRN_CHECK(map_ != nullptr);
  // So that no layer of the system can make it smaller.
  std::mt19937_64 random;
  payload_.resize(map_->block_bytes());
  for (size_t i = 0; i + sizeof(uint64_t) <= payload_.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&payload_[i], &word, sizeof(word));
  }
}

absl::StatusOr<std::vector<BlockKey>> StoreLoad::PutPrompt() {
  node::ReserveQuery query;
  query.scope_digest =
      node::ScopeDigest({.tenant = node::kPublicTenant, .adapter = "", .salt = ""});
  for (size_t i = 0; i < kPromptBlocks; ++i) query.keys.push_back(random_.New<BlockKey>());
  const absl::StatusOr<node::ReserveAnswer> reserved =
      store_->Reserve(node::kPublicTenant, fingerprint_, query);
  if (!reserved.ok()) return reserved.status();
  for (const node::ReserveOutcome outcome : reserved->outcomes) {
    if (outcome == node::ReserveOutcome::kReserved) continue;
    if (reserved->token.has_value()) {
      (void)store_->Abort(node::kPublicTenant, *reserved->token);
    }
    return absl::ResourceExhaustedError("no room for a whole prompt");
  }
  for (uint32_t block = 0; block < kPromptBlocks; ++block) {
    absl::Status status = WriteBlock(*reserved->token, block, query.keys[block]);
    if (!status.ok()) return status;
  }
  return query.keys;
}

absl::Status StoreLoad::WriteBlock(const TokenId& token, uint32_t block, const BlockKey& key) {
  std::vector<node::SegmentRun> runs;
  for (const PayloadMap::Part& part : map_->parts()) {
    node::WritePiece piece;
    piece.run.block = block;
    piece.run.group = part.group;
    piece.run.slice = part.slice;
    piece.length = static_cast<uint32_t>(part.bytes);
    const auto source = absl::MakeConstSpan(payload_).subspan(part.offset, part.bytes);
    for (uint32_t layer = 0; layer < part.layers; ++layer) {
      piece.run.digests.push_back(
          SegmentDigest(key, {part.group, part.slice, layer},
                        source.subspan(layer * part.segment_bytes, part.segment_bytes)));
    }
    absl::StatusOr<node::WriteClaim> claim =
        store_->BeginWrite(node::kPublicTenant, token, kWriter, piece);
    if (!claim.ok()) return claim.status();
    GiveWay();
    std::memcpy(claim->destination().data(), source.data(), source.size());
    GiveWay();
    runs.push_back(piece.run);
    if (absl::Status status = store_->FinishWrite(*std::move(claim)); !status.ok()) return status;
  }
  return store_->Commit(node::kPublicTenant, token, runs).status();
}

}  // namespace cairn::bench
