#include "cache_node/service/feed_filter.h"

#include <utility>

#include "common/base/check.h"

namespace cairn::node {

FeedFilter::FeedFilter(Caller caller, uint32_t shards)
    : caller_(std::move(caller)),
      sees_all_(caller_.Is(Role::kRouter) || caller_.Is(Role::kAdmin)),
      shards_(shards) {}

bool FeedFilter::Admit(v1::WatchBlocksResponse* message) {
  if (sees_all_) return true;
  switch (message->message_case()) {
    case v1::WatchBlocksResponse::kBatch:
      return AdmitBatch(message->mutable_batch());
    case v1::WatchBlocksResponse::kNamespaceRecord:
      return caller_.MaySee(message->namespace_record().tenant());
    case v1::WatchBlocksResponse::kHeartbeat:
      message->mutable_heartbeat()->clear_shards();
      message->mutable_heartbeat()->set_partial(true);
      return true;
    default:
      return true;
  }
}

bool FeedFilter::AdmitBatch(v1::BlockBatch* batch) {
  CAIRN_CHECK(batch->shard() < shards_.size());
  Shard& shard = shards_[batch->shard()];
  if (!batch->keys().empty() && !caller_.MaySee(batch->tenant())) {
    const bool closes = shard.open && !batch->more();
    if (!batch->replaces() && !closes) return false;
    batch->clear_fingerprint();
    batch->clear_tenant();
    batch->clear_keys();
    batch->clear_tier_masks();
    batch->clear_reasons();
  }
  shard.open = batch->more();
  batch->set_sequence(++shard.sequence);
  return true;
}

}  // namespace cairn::node
