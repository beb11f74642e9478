#include "common/security/rpc_rules.h"

#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"

namespace cairn {
namespace {

constexpr RoleSet kWorkers = {Role::kWorker};
constexpr RoleSet kReaders = {Role::kWorker, Role::kNode};
constexpr RoleSet kAdmins = {Role::kAdmin};
constexpr RoleSet kOwners = {Role::kWorker, Role::kAdmin};
constexpr RoleSet kPullers = {Role::kWorker, Role::kRouter};
constexpr RoleSet kExplainers = {Role::kWorker, Role::kRouter, Role::kAdmin};
constexpr RoleSet kPeers = {Role::kNode};
constexpr RoleSet kWatchers = {Role::kWorker, Role::kRouter, Role::kAdmin};
constexpr RoleSet kAskers = RoleSet::All();

constexpr std::array<RpcRule, 34> kRules = {{
    {.method = "CacheNode/RegisterNamespace",
     .roles = kOwners,
     .acts_for_tenant = true,
     .audited = true},
    {.method = "CacheNode/RetireNamespace", .roles = kAdmins, .audited = true},
    {.method = "CacheNode/ClearScope", .roles = kOwners, .audited = true},
    {.method = "CacheNode/PurgeWriter", .roles = kAdmins, .audited = true},
    {.method = "CacheNode/Lookup", .roles = kReaders},
    {.method = "CacheNode/GetLease", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/RenewLease", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/EndLease", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/Get", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/Reserve", .roles = kWorkers},
    {.method = "CacheNode/Write", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "CacheNode/Commit", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "CacheNode/Abort", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "CacheNode/ReportMismatch", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/Delete", .roles = kOwners, .acts_for_tenant = true, .audited = true},
    {.method = "CacheNode/PinBlocks", .roles = kOwners, .acts_for_tenant = true, .audited = true},
    {.method = "CacheNode/PullBlocks", .roles = kPullers},
    {.method = "CacheNode/DescribeBlocks", .roles = kPeers, .acts_for_tenant = true},
    {.method = "CacheNode/ExplainPrompt", .roles = kExplainers},
    {.method = "CacheNode/OpenLocal", .roles = kReaders, .acts_for_tenant = true},
    {.method = "CacheNode/WatchBlocks", .roles = kWatchers},
    {.method = "CacheNode/Describe", .roles = kAskers},
    {.method = "Decode/Attend", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/DecodeStream", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/OpenSequence", .roles = kWorkers},
    {.method = "Decode/ForkSequence", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/TruncateSequence", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/ReleaseWindow", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/GetSequence", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Decode/CloseSequences", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Router/Route", .roles = kWorkers},
    {.method = "Router/LookupPrefix", .roles = kWorkers},
    {.method = "Router/ReportOutcome", .roles = kWorkers, .acts_for_tenant = true},
    {.method = "Router/ListReplicas", .roles = kAskers},
}};

absl::flat_hash_map<absl::string_view, const RpcRule*> MakeIndex() {
  absl::flat_hash_map<absl::string_view, const RpcRule*> index;
  for (const RpcRule& rule : kRules) index[rule.method] = &rule;
  return index;
}

}  // namespace

absl::Span<const RpcRule> AllRpcRules() { return kRules; }

const RpcRule* FindRpcRule(absl::string_view method) {
  // Never destroyed: calls may come until the process ends.
  static const auto& index =
      *new const absl::flat_hash_map<absl::string_view, const RpcRule*>(MakeIndex());
  const auto found = index.find(method);
  return found == index.end() ? nullptr : found->second;
}

std::string NamesOf(RoleSet roles) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < kRoleNames.size(); ++i) {
    if (roles.Has(static_cast<Role>(i))) names.push_back(kRoleNames[i]);
  }
  return absl::StrJoin(names, " or ");
}

}  // namespace cairn
