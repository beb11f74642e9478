#include "cache_node/service/node_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn::node {
namespace {

// It goes out with every heartbeat.
constexpr size_t kReasonBytesMax = 512;

// What the system says of a disk may hold any byte; a message holds UTF-8.
std::string ReasonText(std::string reason) {
  reason.resize(std::min(reason.size(), kReasonBytesMax));
  for (char& c : reason) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return reason;
}

v1::DiskHealth ToProto(DiskTier::Health health) {
  switch (health) {
    case DiskTier::Health::kServing:
      return v1::DISK_HEALTH_SERVING;
    case DiskTier::Health::kFull:
      return v1::DISK_HEALTH_FULL;
    case DiskTier::Health::kFailing:
      return v1::DISK_HEALTH_FAILING;
  }
  CAIRN_CHECK(false);
}

}  // namespace

NodeFacts::NodeFacts(Identity identity, Memory memory, const BlockStore* store,
                     const InFlightBytes* in_flight, const StoreCounters* counters,
                     const DiskTier* disk, DecodeReporter decode)
    : identity_(std::move(identity)),
      memory_(std::move(memory)),
      store_(store),
      in_flight_(in_flight),
      counters_(counters),
      disk_(disk),
      decode_(std::move(decode)) {}

void NodeFacts::SetAddresses(std::vector<std::string> addresses) {
  absl::MutexLock lock(&mutex_);
  addresses_ = std::move(addresses);
}

void NodeFacts::FillInfo(v1::NodeInfo* info) const {
  info->set_contract_version(kContractVersion);
  info->set_node_id(identity_.node_id);
  info->set_incarnation(std::string(identity_.incarnation.view()));
  info->set_worker_address(identity_.worker_address);
  info->set_drain_state(drain_state());
  // One that is out holds nothing.
  const StoreStatus status = store_->Status();
  if (status.device_bytes > 0 && !status.device_failed) info->add_tiers(v1::TIER_DEVICE);
  info->add_tiers(v1::TIER_HOST);
  info->set_shards(identity_.shards);
  info->set_worker_kv_tokens(identity_.worker_kv_tokens);
  LabelsToProto(identity_.labels, info->mutable_labels());
  if (disk_ != nullptr) {
    info->add_tiers(v1::TIER_DISK);
    FillDisk(info->mutable_disk());
  }
  absl::MutexLock lock(&mutex_);
  info->mutable_addresses()->Add(addresses_.begin(), addresses_.end());
}

void NodeFacts::FillLoad(v1::LoadReport* load) const {
  const StoreStatus status = store_->Status();
  const InFlightBytes::Counts in_flight = in_flight_->counts();
  load->set_host_bytes(status.host_bytes);
  load->set_host_used_bytes(status.host_used_bytes);
  load->set_host_pinned_bytes(status.pinned_bytes);
  load->set_host_reserved_bytes(status.reserved_bytes);
  load->set_in_flight_bytes(in_flight.bytes);
  load->set_writers_waiting(static_cast<uint32_t>(in_flight.waiting));
  load->set_leases(status.leases);
  load->set_tokens(status.tokens);
}

void NodeFacts::FillHeartbeat(v1::Heartbeat* heartbeat) const {
  heartbeat->set_incarnation(std::string(identity_.incarnation.view()));
  heartbeat->set_drain_state(drain_state());
  FillLoad(heartbeat->mutable_load());
  if (disk_ != nullptr) FillDisk(heartbeat->mutable_disk());
  if (decode_ != nullptr) decode_(heartbeat->mutable_decode());
}

void NodeFacts::FillDecode(v1::DescribeResponse* response) const {
  if (decode_ != nullptr) decode_(response->mutable_decode());
}

void NodeFacts::FillDisk(v1::DiskReport* report) const {
  const DiskTier::Stats stats = disk_->GetStats();
  report->set_health(ToProto(stats.health));
  report->set_reason(ReasonText(stats.reason));
  report->set_bytes_max(stats.bytes_max);
  report->set_bytes_used(stats.bytes_used);
  report->set_files(stats.files);
  report->set_errors(stats.read_errors + stats.write_errors);
  report->set_damaged(stats.damaged_records + stats.damaged_files);
  const StoreStatus status = store_->Status();
  report->set_recovering(status.recovering);
  report->set_blocks(status.disk_blocks);
  report->set_payload_bytes(status.disk_payload_bytes);
  report->set_spill_queue_blocks(status.spill_queue_blocks);
  report->set_spill_queue_bytes(status.spill_queue_bytes);
  report->set_loads(status.loads);
  report->set_spills_shed(counters_->spills_shed.load(std::memory_order_relaxed));
}

}  // namespace cairn::node
