#include "cache_node/service/node_facts.h"

#include <utility>

#include "common/wire/limits.h"

namespace cairn::node {

NodeFacts::NodeFacts(Identity identity, Memory memory, const BlockStore* store,
                     const InFlightBytes* in_flight)
    : identity_(std::move(identity)),
      memory_(std::move(memory)),
      store_(store),
      in_flight_(in_flight) {}

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
  info->add_tiers(v1::TIER_HOST);
  info->set_shards(identity_.shards);
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
}

}  // namespace cairn::node
