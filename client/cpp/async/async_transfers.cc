#include "client/cpp/async/async_transfers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/async/layer_steps.h"
#include "client/cpp/async/load_by_layers.h"
#include "client/cpp/async/single_call.h"
#include "client/cpp/async/store_by_layers.h"
#include "common/base/check.h"

namespace cairn {

AsyncTransfers::AsyncTransfers(CacheNodeClient* client, const Clock* clock,
                               const AsyncOptions& options)
    : client_(client), clock_(clock), options_(options) {
  CAIRN_CHECK(client != nullptr && clock != nullptr);
  CAIRN_CHECK(options.threads >= 1 && options.threads <= kAsyncThreadsMax);
  CAIRN_CHECK(options.transfers_max >= 1);
  for (size_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Run(); });
}

AsyncTransfers::~AsyncTransfers() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [id, entry] : entries_) {
      entry->cancelled = true;
      if (entry->state == State::kWaiting) Enqueue(id, entry.get());
    }
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status AsyncTransfers::Admit() {
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(!stopping_);
  if (entries_.size() + admitted_ >= options_.transfers_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(entries_.size(), " transfers are under way or not polled, of at most ",
                     options_.transfers_max, ": poll, then submit again"));
  }
  ++admitted_;
  return absl::OkStatus();
}

TransferId AsyncTransfers::Add(std::unique_ptr<Transfer> transfer, uint32_t steps_ready) {
  auto entry = std::make_unique<Entry>();
  entry->transfer = std::move(transfer);
  entry->steps_ready = steps_ready;
  absl::MutexLock lock(&mutex_);
  CAIRN_CHECK(!stopping_ && admitted_ > 0);
  --admitted_;
  const TransferId id{++last_id_};
  Entry* const added = entry.get();
  entries_[id] = std::move(entry);
  Enqueue(id, added);
  return id;
}

absl::StatusOr<TransferId> AsyncTransfers::Submit(LookupTransfer asked) {
  if (absl::Status status = Admit(); !status.ok()) return status;
  return Add(
      std::make_unique<SingleCall<LookupAnswer>>([client = client_, asked = std::move(asked)] {
        return client->Lookup(asked.name_space, asked.prompts, asked.options);
      }));
}

absl::StatusOr<TransferId> AsyncTransfers::Submit(LeaseTransfer asked) {
  if (absl::Status status = Admit(); !status.ok()) return status;
  return Add(std::make_unique<SingleCall<LeaseState>>(
      [client = client_, asked] { return client->GetLease(asked.lease, asked.wait); }));
}

absl::StatusOr<TransferId> AsyncTransfers::Submit(ReserveTransfer asked) {
  if (absl::Status status = Admit(); !status.ok()) return status;
  return Add(
      std::make_unique<SingleCall<WriteSession>>([client = client_, asked = std::move(asked)] {
        return client->Reserve(asked.name_space, asked.prompt, asked.first_block, asked.blocks,
                               asked.options);
      }));
}

absl::StatusOr<TransferId> AsyncTransfers::Submit(LoadTransfer&& asked) {
  if (absl::Status status = CheckSteps(asked.name_space.payload_map(), asked.steps); !status.ok()) {
    return status;
  }
  if (asked.lease.has_value() && asked.lease->prompt_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a load ends its share of a lease, so it takes one of one prompt; this is of ",
                     asked.lease->prompt_count(), ": name it in the lookup of one prompt"));
  }
  if (absl::Status status = Admit(); !status.ok()) return status;
  return Add(std::make_unique<LoadByLayers>(client_, clock_, std::move(asked)));
}

absl::StatusOr<TransferId> AsyncTransfers::Submit(StoreTransfer&& asked) {
  if (!asked.session.token().has_value()) {
    return absl::InvalidArgumentError("the session reserved nothing: there is nothing to store");
  }
  const PayloadMap& map = asked.session.name_space().payload_map();
  if (absl::Status status = CheckSteps(map, asked.steps); !status.ok()) return status;
  if (absl::Status status = Admit(); !status.ok()) return status;
  const uint32_t steps_ready = asked.steps_ready;
  return Add(std::make_unique<StoreByLayers>(std::move(asked)), steps_ready);
}

void AsyncTransfers::SourceReady(TransferId id, uint32_t steps) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || steps <= found->second->steps_ready) return;
  found->second->steps_ready = steps;
  if (found->second->state == State::kWaiting) Enqueue(id, found->second.get());
}

void AsyncTransfers::Cancel(TransferId id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second->cancelled = true;
  if (found->second->state == State::kWaiting) Enqueue(id, found->second.get());
}

void AsyncTransfers::Enqueue(TransferId id, Entry* entry) {
  entry->state = State::kQueued;
  runnable_.push_back(id);
}

std::optional<AsyncTransfers::Work> AsyncTransfers::TakeWork() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &AsyncTransfers::HasWork));
  if (runnable_.empty()) return std::nullopt;  // Stopping, and others have what is left.
  const TransferId id = runnable_.front();
  runnable_.pop_front();
  Entry& entry = *entries_.find(id)->second;
  CAIRN_CHECK(entry.state == State::kQueued && entry.transfer != nullptr);
  entry.state = State::kRunning;
  return Work{id, entry.cancelled, entry.steps_ready, std::move(entry.transfer)};
}

void AsyncTransfers::Run() {
  for (std::optional<Work> work = TakeWork(); work.has_value(); work = TakeWork()) {
    Transfer::Next next = Transfer::Next::kDone;
    if (work->cancelled) {
      work->transfer->Abandon();
    } else {
      next = work->transfer->Step(work->steps_ready);
    }
    if (Settle(&*work, next)) signal_.Raise();
    // What is over is destroyed here, without the lock: that may take a call.
  }
}

bool AsyncTransfers::Settle(Work* work, Transfer::Next next) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = *entries_.find(work->id)->second;
  CAIRN_CHECK(entry.state == State::kRunning);
  const bool went_on = work->transfer->steps_done() != entry.steps_done;
  entry.steps_done = work->transfer->steps_done();
  entry.usable = work->transfer->usable();
  if (next == Transfer::Next::kDone) {
    entry.result.emplace(work->transfer->TakeResult());
    entry.state = State::kOver;
  } else {
    entry.transfer = std::move(work->transfer);
    entry.state = State::kWaiting;
    const bool can_go_on =
        next == Transfer::Next::kStep || entry.cancelled || entry.steps_ready != work->steps_ready;
    if (can_go_on) Enqueue(work->id, &entry);
  }
  if ((!went_on && entry.state != State::kOver) || entry.has_news) return false;
  entry.has_news = true;
  news_.push_back(work->id);
  return true;
}

std::vector<TransferEvent> AsyncTransfers::Poll(size_t events_max) {
  std::vector<TransferEvent> events;
  signal_.Clear();  // Before looking: what comes later raises it again.
  bool more = false;
  {
    absl::MutexLock lock(&mutex_);
    while (!news_.empty() && events.size() < events_max) {
      const TransferId id = news_.front();
      news_.pop_front();
      const auto found = entries_.find(id);
      CAIRN_CHECK(found != entries_.end() && found->second->has_news);
      Entry& entry = *found->second;
      entry.has_news = false;
      events.push_back({id, entry.steps_done, entry.usable, std::move(entry.result)});
      if (entry.state == State::kOver) entries_.erase(found);
    }
    more = !news_.empty();
  }
  if (more) signal_.Raise();
  return events;
}

size_t AsyncTransfers::open_count() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace cairn
