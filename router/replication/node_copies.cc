#include "router/replication/node_copies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cairn/v1/pull.pb.h"
#include "common/rpc/caller_identity.h"
#include "common/rpc/id_conversion.h"
#include "common/wire/limits.h"

namespace cairn::router {
namespace {

constexpr uint64_t kQueueBytesMax = uint64_t{16} << 20;
constexpr int kNice = 5;
// Of a call beyond its wait: what stopping may take longer.
constexpr absl::Duration kCallSlack = absl::Seconds(2);

}  // namespace

NodeCopies::NodeCopies(const ClientOptions& options, const ClientParts& parts)
    : options_(options),
      parts_(parts),
      threads_(std::make_unique<Executor>(Executor::Options{.name = "copies",
                                                            .threads = kThreads,
                                                            .queue_max = kQueueMax,
                                                            .queue_bytes_max = kQueueBytesMax,
                                                            .nice = kNice})) {}

NodeCopies::~NodeCopies() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  threads_ = nullptr;
}

bool NodeCopies::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void NodeCopies::Start(const CopyOrder& order, Done done) {
  const absl::Status taken = threads_->Submit([this, order, done] { done(Copy(order)); },
                                              order.keys.size() * sizeof(BlockKey));
  if (taken.ok()) return;
  CopyResult refused;
  refused.status = taken;
  done(refused);
}

std::shared_ptr<NodeLink> NodeCopies::LinkTo(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<NodeLink>& link = links_[address];
  if (link == nullptr) {
    ClientOptions options = options_;
    options.target = address;
    // Kept small: connections are made for small calls alone, when one is made.
    options.data_channels = 1;
    link = std::make_shared<NodeLink>(options, parts_);
  }
  std::shared_ptr<NodeLink> answer = link;
  if (links_.size() > kLinksMax) links_.clear();
  return answer;
}

CopyResult NodeCopies::Copy(const CopyOrder& order) {
  CopyResult result;
  const std::string public_tenant = kPublicTenant;
  const absl::Time deadline = parts_.clock->SteadyNow() + kCopyMax;
  const std::shared_ptr<NodeLink> link = LinkTo(order.node_addresses.front());
  size_t count = 0;
  for (size_t first = 0; first < order.keys.size(); first += count) {
    const bool is_public = first < order.public_blocks;
    const size_t end = is_public ? order.public_blocks : order.keys.size();
    const std::string& tenant = is_public ? public_tenant : order.tenant;
    count = std::min<size_t>(end - first, kKeysPerPullMax);
    if (!CopyPart(order, tenant, first, count, deadline, link.get(), &result)) break;
  }
  return result;
}

bool NodeCopies::CopyPart(const CopyOrder& order, const std::string& tenant, size_t first,
                          size_t count, absl::Time deadline, NodeLink* link, CopyResult* result) {
  v1::PullBlocksRequest request;
  request.set_fingerprint(std::string(order.fingerprint.view()));
  request.set_tenant(tenant);
  request.set_source(order.source_node_id);
  request.set_keys(KeysToProto(absl::MakeConstSpan(order.keys).subspan(first, count)));
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kWait)));
  std::optional<uint64_t> present_before;
  uint64_t block_bytes = 0;
  while (!stopping() && parts_.clock->SteadyNow() < deadline) {
    v1::PullBlocksResponse response;
    result->status =
        link->CallOnce(&v1::CacheNode::Stub::PullBlocks, request, kWait + kCallSlack, &response);
    if (!result->status.ok()) return false;
    const auto count_of = [&response](v1::PullOutcome outcome) {
      return static_cast<uint64_t>(
          std::count(response.outcomes().begin(), response.outcomes().end(), outcome));
    };
    const uint64_t pulled = count_of(v1::PULL_OUTCOME_PULLED);
    const uint64_t present = count_of(v1::PULL_OUTCOME_PRESENT);
    if (pulled > 0) block_bytes = response.pulled_bytes() / pulled;
    // What a call before brought is present to the next.
    if (!present_before.has_value()) present_before = present;
    if (!response.complete()) continue;
    const uint64_t here = pulled + present;
    result->blocks_present += std::min(*present_before, here);
    result->blocks_pulled += here - std::min(*present_before, here);
    result->bytes_pulled += (here - std::min(*present_before, here)) * block_bytes;
    return here == count;
  }
  return false;
}

}  // namespace cairn::router
