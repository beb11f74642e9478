// cairnctl describe: what a node is and holds.
#include <nlohmann/json.hpp>
#include <utility>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "common/base/hex.h"
#include "common/rpc/labels.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json NodeOf(const v1::NodeInfo& node) {
  Json tiers = Json::array();
  for (const int tier : node.tiers()) tiers.push_back(v1::Tier_Name(static_cast<v1::Tier>(tier)));
  Json labels = Json::array();
  for (const v1::Label& label : node.labels()) {
    labels.push_back(LabelText({label.key(), label.value()}));
  }
  return {{"node_id", node.node_id()},
          {"incarnation_hex", ToHex(node.incarnation())},
          {"contract_version", node.contract_version()},
          {"addresses", std::vector<std::string>(node.addresses().begin(), node.addresses().end())},
          {"worker_address", node.worker_address()},
          {"worker_kv_tokens", node.worker_kv_tokens()},
          {"labels", std::move(labels)},
          {"drain_state", v1::DrainState_Name(node.drain_state())},
          {"tiers", tiers},
          {"shards", node.shards()}};
}

Json LoadOf(const v1::LoadReport& load) {
  return {{"host_bytes", load.host_bytes()},
          {"host_used_bytes", load.host_used_bytes()},
          {"host_pinned_bytes", load.host_pinned_bytes()},
          {"host_reserved_bytes", load.host_reserved_bytes()},
          {"in_flight_bytes", load.in_flight_bytes()},
          {"writers_waiting", load.writers_waiting()},
          {"leases", load.leases()},
          {"tokens", load.tokens()}};
}

Json DiskOf(const v1::DiskReport& disk) {
  return {{"health", v1::DiskHealth_Name(disk.health())},
          {"reason", disk.reason()},
          {"recovering", disk.recovering()},
          {"bytes_used", disk.bytes_used()},
          {"bytes_max", disk.bytes_max()},
          {"files", disk.files()},
          {"blocks", disk.blocks()},
          {"payload_bytes", disk.payload_bytes()},
          {"spill_queue_blocks", disk.spill_queue_blocks()},
          {"spill_queue_bytes", disk.spill_queue_bytes()},
          {"spills_shed", disk.spills_shed()},
          {"loads", disk.loads()},
          {"errors", disk.errors()},
          {"damaged", disk.damaged()}};
}

Json DecodeOf(const v1::DecodeReport& decode) {
  return {{"bytes_max", decode.bytes_max()},
          {"bytes_free", decode.bytes_free()},
          {"tokens_reserved", decode.tokens_reserved()},
          {"tokens_free", decode.tokens_free()},
          {"running", decode.running()},
          {"waiting", decode.waiting()},
          {"refused", decode.refused()},
          {"reclaimed", decode.reclaimed()},
          {"preempted", decode.preempted()}};
}

Json ListsOf(const v1::DescribeResponse& answer) {
  Json lists = {
      {"namespaces", Json::array()}, {"tenants", Json::array()}, {"memory", Json::array()}};
  for (const v1::NamespaceInfo& one : answer.namespaces()) {
    lists["namespaces"].push_back({{"name", one.name()},
                                   {"fingerprint_hex", ToHex(one.fingerprint())},
                                   {"model", one.model()},
                                   {"block_tokens", one.block_tokens()},
                                   {"block_bytes", one.block_bytes()},
                                   {"blocks", one.blocks()},
                                   {"disk_blocks", one.disk_blocks()}});
  }
  for (const v1::TenantInfo& one : answer.tenants()) {
    lists["tenants"].push_back({{"tenant", one.tenant()},
                                {"charged_bytes", one.charged_bytes()},
                                {"leased_bytes", one.leased_bytes()},
                                {"reserved_bytes", one.reserved_bytes()},
                                {"pinned_bytes", one.pinned_bytes()},
                                {"disk_bytes", one.disk_bytes()}});
  }
  for (const v1::MemoryTerm& one : answer.memory()) {
    lists["memory"].push_back({{"name", one.name()}, {"bytes", one.bytes()}});
  }
  return lists;
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  NodeSession node(line);
  if (!node.status().ok()) return node.status();
  const absl::StatusOr<v1::DescribeResponse> answer = node->Describe();
  if (!answer.ok()) return answer.status();
  Json result = {{"tenant", answer->tenant()}};
  result.update(Json{{"node", NodeOf(answer->node())},
                     {"blocks", answer->blocks()},
                     {"quarantined", answer->quarantined()},
                     {"pins", answer->pins()},
                     {"load", LoadOf(answer->load())},
                     {"memory_limit_bytes", answer->memory_limit_bytes()}});
  if (answer->node().has_disk()) result["disk"] = DiskOf(answer->node().disk());
  if (answer->has_decode()) result["decode"] = DecodeOf(answer->decode());
  result.update(ListsOf(*answer));
  return Print(line, result, streams.out);
}

}  // namespace

Command DescribeCommand() {
  return {.name = "describe",
          .summary = "says what the node is, what it holds and how busy it is",
          .flags = WithCommonFlags({{"tenant", "NAME", "", "whose namespaces; of several"}},
                                   /*asks_node=*/true),
          .run = Run};
}

}  // namespace cairn::ctl
