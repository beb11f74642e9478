#include "client/cpp/async/load_by_layers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {

namespace {

// Of a share that was joined, whose time to live is not known here.
constexpr absl::Duration kRenewAfter = absl::Seconds(5);

absl::Duration RenewAfter(const std::optional<ReadLease>& lease) {
  return lease.has_value() && lease->ttl() > absl::ZeroDuration() ? lease->ttl() / 3 : kRenewAfter;
}

}  // namespace

LoadByLayers::LoadByLayers(CacheNodeClient* client, const Clock* clock, LoadTransfer asked)
    : client_(client),
      clock_(clock),
      asked_(std::move(asked)),
      deadline_(asked_.timeout == absl::ZeroDuration() ? absl::InfiniteFuture()
                                                       : clock->SteadyNow() + asked_.timeout),
      renew_at_(clock->SteadyNow() + RenewAfter(asked_.lease)) {
  CAIRN_CHECK(!asked_.steps.empty());
  CAIRN_CHECK(!asked_.lease.has_value() || asked_.lease->prompt_count() == 1);
  result_.usable_prefix = asked_.keys.size();
}

// Blocks that a step could not bring are not asked for again: nothing behind them can be used.
Transfer::Next LoadByLayers::Step(uint32_t /*steps_ready*/) {
  CAIRN_CHECK(steps_done_ < asked_.steps.size());
  GetOptions options;
  if (asked_.lease.has_value()) {
    RenewShare();
    options.lease = asked_.lease->id();
  }
  const LayerStep& step = asked_.steps[steps_done_];
  options.parts = step.parts;
  if (deadline_ != absl::InfiniteFuture()) {
    options.timeout = deadline_ - clock_->SteadyNow();
    if (options.timeout <= absl::ZeroDuration()) {
      GiveUp(absl::DeadlineExceededError("the time for this transfer is over"));
      return Next::kDone;
    }
  }
  const size_t blocks = result_.usable_prefix;
  const bool windowed = step.window_blocks > 0 && step.window_blocks < blocks;
  const size_t first = windowed ? blocks - step.window_blocks : 0;
  if (windowed) usable_least_ = std::max(usable_least_, blocks);
  if (blocks > 0) {
    const auto place = [this, first](size_t block, const SegmentId& id) {
      return asked_.place(first + block, id);
    };
    const absl::Span<const BlockKey> keys =
        absl::MakeConstSpan(asked_.keys).subspan(first, blocks - first);
    Remember(client_->Get(asked_.name_space, keys, place, options), first);
  }
  if (result_.usable_prefix == 0) {
    GiveUp(result_.status);
    return Next::kDone;
  }
  if (++steps_done_ < asked_.steps.size()) return Next::kStep;
  EndShare();
  return Next::kDone;
}

void LoadByLayers::Remember(const GetResult& got, size_t first) {
  result_.status.Update(got.status);
  result_.usable_prefix = std::min(result_.usable_prefix, first + got.usable_prefix);
  if (result_.usable_prefix < usable_least_) result_.usable_prefix = 0;
  result_.bytes_verified += got.bytes_verified;
  for (const MismatchedSegment& mismatch : got.mismatches) {
    if (result_.mismatches.size() == kMismatchesPerEndMax) break;
    result_.mismatches.push_back(mismatch);
    result_.mismatches.back().block += first;
  }
}

void LoadByLayers::RenewShare() {
  if (clock_->SteadyNow() < renew_at_) return;
  asked_.lease->Renew(absl::ZeroDuration()).status().IgnoreError();
  renew_at_ = clock_->SteadyNow() + RenewAfter(asked_.lease);
}

void LoadByLayers::GiveUp(absl::Status why) {
  result_.status.Update(why);
  result_.usable_prefix = 0;
  EndShare();
}

void LoadByLayers::Abandon() { GiveUp(absl::CancelledError("cancelled")); }

// Of no interest to the engine how this ends: the share's time to live ends it too. Mismatches were
// reported by the calls that met them.
void LoadByLayers::EndShare() {
  if (!asked_.lease.has_value()) return;
  const auto usable = static_cast<uint32_t>(result_.usable_prefix);
  asked_.lease->End({&usable, 1}).IgnoreError();
  asked_.lease.reset();
}

}  // namespace cairn
