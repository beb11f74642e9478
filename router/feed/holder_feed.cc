#include "router/feed/holder_feed.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::router {
namespace {

// True without a disk tier.
bool AccountsForDisk(const v1::DiskReport& disk) {
  return !disk.recovering() && disk.health() != v1::DISK_HEALTH_FAILING;
}

}  // namespace

absl::string_view HolderStateName(HolderState state) {
  switch (state) {
    case HolderState::kOut:
      return "OUT";
    case HolderState::kDegraded:
      return "DEGRADED";
    case HolderState::kRecovering:
      return "RECOVERING";
    case HolderState::kExact:
      return "EXACT";
  }
  CAIRN_CHECK_MSG(false, "a holder's state that does not exist");
  return "";
}

absl::StatusOr<uint32_t> HolderFeed::IndexSink::OwnerOf(const Fingerprint& fingerprint,
                                                        absl::string_view tenant) {
  const std::optional<PartitionIndex> partition = targets_.partitions->Intern(fingerprint, tenant);
  if (partition.has_value()) return *partition;
  return absl::ResourceExhaustedError(
      "the feeds name more pairs of namespace and tenant than the index may hold");
}

std::optional<uint8_t> HolderFeed::IndexSink::Set(uint32_t owner, const BlockKey& key,
                                                  uint8_t tiers) {
  targets_.speculative->Fed(holder_, key);
  return targets_.blocks->Set(holder_, owner, key, tiers);
}

void HolderFeed::IndexSink::ClearShard(uint32_t shard) {
  targets_.blocks->ClearShard(holder_, shard);
}

HolderFeed::HolderFeed(HolderIndex holder, const FeedOptions& options, const FeedTargets& targets)
    : holder_(holder), options_(options), targets_(targets), sink_(holder, targets) {
  CAIRN_CHECK(options.degraded_after <= options.out_after);
}

absl::Status HolderFeed::CheckHello(const v1::NodeInfo& hello) {
  const auto bad = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("the feed's hello ", what));
  };
  if (hello.contract_version() != kContractVersion) {
    return bad(absl::StrCat("is of contract version ", hello.contract_version(), ", this is ",
                            kContractVersion));
  }
  if (hello.shards() == 0 || hello.shards() > kFeedShardsMax) {
    return bad(
        absl::StrCat("has ", hello.shards(), " shards; 1 to ", kFeedShardsMax, " are allowed"));
  }
  if (!Incarnation::FromBytes(hello.incarnation())) {
    return bad("has an incarnation that is not 16 bytes");
  }
  if (hello.node_id().empty() || hello.node_id().size() > kNameBytesMax) {
    return bad(absl::StrCat("has a node id of ", hello.node_id().size(), " bytes; 1 to ",
                            kNameBytesMax, " are allowed"));
  }
  if (hello.worker_address().size() > kNameBytesMax) return bad("has a too long worker address");
  if (static_cast<size_t>(hello.addresses_size()) > kNodeAddressesMax) {
    return bad(
        absl::StrCat("has ", hello.addresses_size(), " addresses, over ", kNodeAddressesMax));
  }
  for (const std::string& address : hello.addresses()) {
    if (address.size() > kNameBytesMax) return bad("has a too long address");
  }
  return absl::OkStatus();
}

absl::Status HolderFeed::Apply(const v1::WatchBlocksResponse& message, absl::Time now) {
  size_t taken = 0;
  const absl::StatusOr<bool> done =
      ApplyPiece(message, std::numeric_limits<size_t>::max(), &taken, now);
  CAIRN_CHECK(!done.ok() || *done);
  return done.status();
}

absl::StatusOr<bool> HolderFeed::ApplyPiece(const v1::WatchBlocksResponse& message,
                                            size_t records_max, size_t* taken, absl::Time now) {
  absl::StatusOr<bool> done = Dispatch(message, records_max, taken, now);
  midway_ = done.ok() && !*done;
  if (done.ok()) {
    last_message_at_ = now;
  } else {
    Broke();
  }
  return done;
}

absl::StatusOr<bool> HolderFeed::Dispatch(const v1::WatchBlocksResponse& message,
                                          size_t records_max, size_t* taken, absl::Time now) {
  if (tracker_ == nullptr && *taken > 0) {
    return absl::AbortedError("the holder was forgotten while a batch of it was taken in");
  }
  if (tracker_ != nullptr && message.has_batch()) {
    return tracker_->ApplyBatchPiece(message.batch(), records_max, taken, now);
  }
  if (absl::Status status = DispatchWhole(message, now); !status.ok()) return status;
  return true;
}

absl::Status HolderFeed::DispatchWhole(const v1::WatchBlocksResponse& message, absl::Time now) {
  if (message.has_hello()) return ApplyHello(message.hello());
  if (tracker_ == nullptr) {
    return absl::InvalidArgumentError("the feed did not begin with a hello");
  }
  if (message.has_namespace_record()) return ApplyNamespace(message.namespace_record());
  if (message.has_heartbeat()) return ApplyHeartbeat(message.heartbeat(), now);
  return absl::OkStatus();  // Of a later version of the contract.
}

absl::Status HolderFeed::ApplyHello(const v1::NodeInfo& hello) {
  if (absl::Status status = CheckHello(hello); !status.ok()) return status;
  if (tracker_ != nullptr) return absl::InvalidArgumentError("a second hello on one feed");
  const bool same_run = node_.has_value() && node_->incarnation() == hello.incarnation() &&
                        node_->node_id() == hello.node_id() && node_->shards() == hello.shards();
  if (!same_run) {
    if (node_.has_value()) Forget();
    targets_.blocks->Begin(holder_, hello.shards());
  }
  node_ = hello;
  disk_accounted_ = AccountsForDisk(hello.disk());
  tracker_ = std::make_unique<FeedTracker>(options_.resync, hello.shards(), &sink_);
  return absl::OkStatus();
}

absl::Status HolderFeed::ApplyNamespace(const v1::NamespaceRecord& record) {
  const std::optional<Fingerprint> fingerprint = Fingerprint::FromBytes(record.fingerprint());
  if (!fingerprint) {
    return absl::InvalidArgumentError("a namespace record's fingerprint is not 32 bytes");
  }
  if (record.retired()) return targets_.namespaces->Retired(holder_, *fingerprint);
  if (record.key_scheme() != static_cast<uint32_t>(KeyScheme::kCairn) &&
      record.key_scheme() != static_cast<uint32_t>(KeyScheme::kExternal)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a namespace record's key scheme is ", record.key_scheme()));
  }
  return targets_.namespaces->Registered(holder_, *fingerprint, record.block_tokens(),
                                         static_cast<KeyScheme>(record.key_scheme()));
}

absl::Status HolderFeed::ApplyHeartbeat(const v1::Heartbeat& heartbeat, absl::Time now) {
  if (heartbeat.incarnation() != node_->incarnation()) {
    return absl::InvalidArgumentError("a heartbeat of another incarnation than the hello's");
  }
  load_ = heartbeat.load();
  node_->set_drain_state(heartbeat.drain_state());
  disk_accounted_ = AccountsForDisk(heartbeat.disk());
  return tracker_->ApplyDigests(heartbeat.shards(), now);
}

void HolderFeed::Broke() { tracker_.reset(); }

void HolderFeed::Forget() {
  Broke();
  if (!node_.has_value()) return;
  targets_.blocks->Begin(holder_, node_->shards());
  targets_.speculative->EndHolder(holder_);
  targets_.namespaces->Forget(holder_);
  node_.reset();
  load_.reset();
}

HolderState HolderFeed::StateAt(absl::Time now) const {
  if (tracker_ == nullptr) return HolderState::kOut;
  const absl::Duration silent = now - last_message_at_;
  if (silent >= options_.out_after) return HolderState::kOut;
  if (silent >= options_.degraded_after) return HolderState::kDegraded;
  return tracker_->Exact() && disk_accounted_ ? HolderState::kExact : HolderState::kRecovering;
}

std::vector<uint32_t> HolderFeed::TakeResyncs(absl::Time now) {
  if (tracker_ == nullptr) return {};
  return tracker_->TakeResyncs(now);
}

}  // namespace cairn::router
