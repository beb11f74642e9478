#include "router/service/node_followers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::router {
namespace {

void Add(const FeedFollower::Status& status, NodeFollowers::Totals* totals) {
  totals->feeds_ended += status.feeds_ended;
  totals->messages += status.messages;
  totals->shards_asked_again += status.shards_asked_again;
  totals->partial_heartbeats += status.partial_heartbeats;
}

bool IsSame(const Member& member, absl::string_view address, absl::string_view identity) {
  if (member.address != address) return false;
  return member.identity.empty() || identity.empty() || member.identity == identity;
}

}  // namespace

NodeFollowers::NodeFollowers(size_t nodes_max, const FeedFollower::Options& options,
                             FeedFollower::Parts parts)
    : nodes_max_(nodes_max), options_(options), parts_(std::move(parts)) {
  CAIRN_CHECK(nodes_max_ > 0 && nodes_max_ <= kHoldersMax && parts_.core != nullptr);
}

NodeFollowers::~NodeFollowers() { Stop(); }

void NodeFollowers::Apply(absl::Span<const Member> members) {
  const absl::Span<const Member> wanted = members.first(std::min(members.size(), nodes_max_));
  const uint64_t over_bound = members.size() - wanted.size();
  bool says_other = false;
  {
    absl::MutexLock lock(&mutex_);
    says_other = std::exchange(gone_.over_bound, over_bound) != over_bound;
  }
  if (says_other && over_bound > 0) {
    Log(absl::StrCat(members.size(), " nodes are listed; the last ", over_bound,
                     " are not followed: --nodes-max is ", nodes_max_));
  }
  RemoveAllBut(wanted);
  for (const Member& member : wanted) {
    if (!Update(member)) Join(member);
  }
}

void NodeFollowers::RemoveAllBut(absl::Span<const Member> members) {
  std::vector<Followed> left;
  {
    absl::MutexLock lock(&mutex_);
    const auto stays = [&members](const Followed& followed) {
      return std::any_of(members.begin(), members.end(), [&followed](const Member& member) {
        return IsSame(member, followed.follower->address(), followed.identity);
      });
    };
    const auto gone = std::stable_partition(followed_.begin(), followed_.end(), stays);
    std::move(gone, followed_.end(), std::back_inserter(left));
    followed_.erase(gone, followed_.end());
    gone_.left += left.size();
    // At once, so that no sum goes back meanwhile.
    for (const Followed& followed : left) Add(followed.follower->status(), &gone_);
  }
  for (const Followed& followed : left) {
    parts_.core->HoldBack(followed.holder, true);
    Log(absl::StrCat("node ", followed.follower->address(), " is no longer listed"));
  }
  End(std::move(left));
}

void NodeFollowers::End(std::vector<Followed> ended) {
  for (const Followed& followed : ended) followed.follower->Stop();
  for (Followed& followed : ended) {
    followed.follower = nullptr;  // Waits for its thread.
    parts_.core->RemoveHolder(followed.holder);
  }
}

bool NodeFollowers::Update(const Member& member) {
  const bool held_back = member.state != MemberState::kServing;
  HolderIndex holder = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(followed_.begin(), followed_.end(), [&member](const Followed& followed) {
          return followed.follower->address() == member.address;
        });
    if (found == followed_.end()) return false;
    if (!member.identity.empty()) found->identity = member.identity;
    if (std::exchange(found->held_back, held_back) == held_back) return true;
    holder = found->holder;
  }
  parts_.core->HoldBack(holder, held_back);
  Log(absl::StrCat("node ", member.address,
                   member.state == MemberState::kLeaving    ? " leaves"
                   : member.state == MemberState::kNotReady ? " is not ready"
                                                            : " is ready"));
  return true;
}

void NodeFollowers::Join(const Member& member) {
  const absl::StatusOr<HolderIndex> holder = parts_.core->AddHolder(member.address);
  if (!holder.ok()) return Log(absl::StrCat("not followed: ", holder.status().message()));
  Followed joined;
  joined.holder = *holder;
  joined.identity = member.identity;
  joined.held_back = member.state != MemberState::kServing;
  if (joined.held_back) parts_.core->HoldBack(*holder, true);
  joined.follower = std::make_unique<FeedFollower>(*holder, member.address, options_, parts_);
  absl::MutexLock lock(&mutex_);
  followed_.push_back(std::move(joined));
  ++gone_.joined;
}

std::vector<NodeFollowers::Entry> NodeFollowers::Entries() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Entry> entries;
  for (const Followed& followed : followed_) {
    entries.push_back({followed.holder, followed.follower->address(), followed.held_back,
                       followed.follower->status()});
  }
  return entries;
}

NodeFollowers::Totals NodeFollowers::totals() const {
  absl::MutexLock lock(&mutex_);
  Totals totals = gone_;
  for (const Followed& followed : followed_) Add(followed.follower->status(), &totals);
  return totals;
}

void NodeFollowers::Stop() {
  std::vector<Followed> all;
  {
    absl::MutexLock lock(&mutex_);
    all = std::exchange(followed_, {});
    for (const Followed& followed : all) Add(followed.follower->status(), &gone_);
  }
  End(std::move(all));
}

void NodeFollowers::Log(absl::string_view line) const {
  if (parts_.log != nullptr) parts_.log(line);
}

}  // namespace cairn::router
