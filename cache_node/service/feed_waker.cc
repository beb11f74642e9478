#include "cache_node/service/feed_waker.h"

#include "common/server/thread_name.h"

namespace cairn::node {

FeedWaker::FeedWaker(FeedRouter* router) : router_(router), thread_([this] { Run(); }) {}

FeedWaker::~FeedWaker() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void FeedWaker::Signal(const std::vector<WatcherId>& watchers) {
  absl::MutexLock lock(&mutex_);
  woken_.insert(watchers.begin(), watchers.end());
}

void FeedWaker::Run() {
  NameThisThread("feed-waker");
  while (true) {
    std::vector<WatcherId> watchers;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FeedWaker::HasWork));
      if (stopping_) return;
      watchers.assign(woken_.begin(), woken_.end());
      woken_.clear();
    }
    router_->Wake(watchers);
  }
}

}  // namespace cairn::node
