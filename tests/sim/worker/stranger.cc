#include "tests/sim/worker/stranger.h"

#include <algorithm>
#include <utility>

#include "cairn/v1/cache_node.pb.h"
#include "common/rpc/id_conversion.h"
#include "common/rpc/prompt_conversion.h"

namespace cairn::sim {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
constexpr const char* kTenants[] = {"acme", "globex", "mallory", "public"};
constexpr size_t kDeletedMax = 3;
constexpr size_t kGotMax = 4;

}  // namespace

Stranger::Stranger(World* world, const Options& options, const PromptBook* book, const Truth* truth,
                   const FleetView* fleet)
    : world_(world),
      options_(options),
      book_(book),
      truth_(truth),
      fleet_(fleet),
      dice_(world->seed, "stranger") {
  ActSoon();
}

void Stranger::ActSoon() {
  world_->scheduler.After(dice_.Between(absl::ZeroDuration(), options_.pause_most), options_.host,
                          [this] { Act(); });
}

void Stranger::Act() {
  if (stopped_) return;
  ActSoon();
  if (book_->prompts().empty()) return;
  place_ = dice_.Below(options_.nodes.size());
  if (dice_.Chance(options_.removes_chance)) {
    Remove();
  } else {
    Pry();
  }
}

const SimPrompt* Stranger::AnyPrompt() {
  // Mostly one of the last, which may still be there.
  const size_t count = book_->prompts().size();
  const size_t back = dice_.Below(std::min<size_t>(count, dice_.Chance(8000) ? 30 : count));
  return &book_->prompts()[count - 1 - back];
}

std::string Stranger::AnyTenant() { return kTenants[dice_.Below(std::size(kTenants))]; }

ClientSide Stranger::SideOf(const std::string& tenant, bool admin) {
  return {world_, options_.host,
          Caller{.id = "stranger",
                 .tenant = tenant,
                 .roles = admin ? RoleSet::All() : RoleSet({Role::kWorker})},
          &dice_};
}

void Stranger::Call(HostId to, Method method, const std::string& tenant, bool admin,
                    const google::protobuf::MessageLite& request) {
  const uint64_t number = next_call_++;
  calls_[number] =
      std::make_unique<UnaryCall>(SideOf(tenant, admin), to, method, request.SerializeAsString(),
                                  kTimeout, [this, number](const absl::StatusOr<std::string>&) {
                                    const auto over = calls_.extract(number);
                                  });
}

void Stranger::Remove() {
  const SimPrompt& prompt = *AnyPrompt();
  const std::string fingerprint(prompt.name_space().fingerprint().view());
  const HostId node = options_.nodes[place_];
  const uint64_t kind = dice_.Below(10);
  if (kind < 6) {
    const std::vector<BlockKey>& keys = prompt.prompt().keys();
    const size_t first = dice_.Below(keys.size());
    v1::DeleteRequest request;
    request.set_fingerprint(fingerprint);
    request.set_keys(
        KeysToProto(absl::MakeConstSpan(keys).subspan(first, dice_.Between(1, kDeletedMax))));
    Call(node, Method::kDelete, dice_.Chance(8000) ? prompt.tenant() : AnyTenant(), false, request);
  } else if (kind < 9) {
    v1::ClearScopeRequest request;
    request.set_fingerprint(fingerprint);
    *request.mutable_scope() = ScopeToProto(prompt.regions().back().scope);
    Call(node, Method::kClearScope, prompt.tenant(), false, request);
  } else {
    v1::RetireNamespaceRequest request;
    request.set_fingerprint(fingerprint);
    Call(node, Method::kRetireNamespace, "operator", true, request);
  }
}

void Stranger::Pry() {
  const SimPrompt& prompt = *AnyPrompt();
  std::vector<std::string> leases;
  std::vector<std::string> tokens;
  if (const SimNode* node = fleet_->node(place_)) {
    leases = truth_->LeasesOf(node->life());
    tokens = truth_->TokensOf(node->life());
  }
  switch (dice_.Below(6)) {
    case 0:
      return AskForKeys(prompt);
    case 1:
      return GetKeys(prompt, std::nullopt);
    case 2:
      if (leases.empty()) return;
      return GetKeys(prompt, *LeaseId::FromBytes(leases[dice_.Below(leases.size())]));
    case 3:
      if (leases.empty()) return;
      return TouchLease(leases[dice_.Below(leases.size())]);
    case 4:
      if (tokens.empty()) return;
      return TouchToken(tokens[dice_.Below(tokens.size())]);
    default:
      return ReportGoodBlock(prompt);
  }
}

void Stranger::AskForKeys(const SimPrompt& prompt) {
  const std::string tenant = AnyTenant();
  v1::LookupRequest request;
  request.set_fingerprint(std::string(prompt.name_space().fingerprint().view()));
  request.add_prompts()->set_keys(KeysToProto(prompt.prompt().keys()));
  if (dice_.Below(2) == 0) {
    request.mutable_lease()->set_readers(static_cast<uint32_t>(dice_.Between(1, 3)));
  }
  Call(options_.nodes[place_], Method::kLookup, tenant, false, request);
  v1::LookupPrefixRequest at_router;
  at_router.set_fingerprint(request.fingerprint());
  at_router.mutable_prompt()->set_keys(request.prompts(0).keys());
  Call(options_.router, Method::kLookupPrefix, tenant, false, at_router);
}

// Of a tenant that may or may not be the owner: what it names is not there for others.
void Stranger::TouchLease(const std::string& lease) {
  const HostId node = options_.nodes[place_];
  switch (dice_.Below(3)) {
    case 0: {
      v1::GetLeaseRequest request;
      request.set_lease(lease);
      return Call(node, Method::kGetLease, AnyTenant(), false, request);
    }
    case 1: {
      v1::RenewLeaseRequest request;
      request.set_lease(lease);
      return Call(node, Method::kRenewLease, AnyTenant(), false, request);
    }
    default: {
      v1::EndLeaseRequest request;
      request.set_lease(lease);
      request.add_usable_blocks(0);
      return Call(node, Method::kEndLease, "mallory", false, request);
    }
  }
}

void Stranger::TouchToken(const std::string& token) {
  if (dice_.Below(2) == 0) {
    v1::CommitRequest request;
    request.set_token(token);
    return Call(options_.nodes[place_], Method::kCommit, AnyTenant(), false, request);
  }
  v1::AbortRequest request;
  request.set_token(token);
  Call(options_.nodes[place_], Method::kAbort, "mallory", false, request);
}

void Stranger::ReportGoodBlock(const SimPrompt& prompt) {
  const std::vector<BlockKey>& keys = prompt.prompt().keys();
  v1::ReportMismatchRequest request;
  request.set_fingerprint(std::string(prompt.name_space().fingerprint().view()));
  request.mutable_segment()->set_key(std::string(keys[dice_.Below(keys.size())].view()));
  Call(options_.nodes[place_], Method::kReportMismatch, AnyTenant(), false, request);
}

void Stranger::GetKeys(const SimPrompt& prompt, const std::optional<LeaseId>& lease) {
  const std::vector<BlockKey>& keys = prompt.prompt().keys();
  const auto count = static_cast<ptrdiff_t>(std::min(keys.size(), kGotMax));
  const uint64_t number = next_call_++;
  std::unique_ptr<Get>& get = gets_[number];
  get = std::make_unique<Get>();
  get->memory.resize(static_cast<size_t>(count) * prompt.name_space().block_bytes());
  get->call = std::make_unique<GetCall>(
      SideOf(AnyTenant()), options_.nodes[place_],
      GetCall::What{.name_space = &prompt.name_space(),
                    .keys = {keys.begin(), keys.begin() + count},
                    .lease = lease,
                    .parts = RequiredParts(prompt.name_space().payload_map()),
                    .place = absl::MakeSpan(get->memory)},
      kTimeout, [this, number](const GetResult&) { const auto over = gets_.extract(number); });
}

}  // namespace cairn::sim
