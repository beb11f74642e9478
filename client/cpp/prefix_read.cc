#include "client/cpp/prefix_read.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/wire/limits.h"

namespace cairn {

PrefixRead::PrefixRead(CacheNodeClient* node, const NamespaceHandle* name_space,
                       const Prompt* prompt, const PrefixReadOptions& options)
    : node_(node),
      name_space_(name_space),
      prompt_(prompt),
      options_(options),
      parts_(RequiredParts(name_space->payload_map())) {}

absl::Status PrefixRead::Run(size_t end, PrefillEngine* engine, CallBudget* budget) {
  CAIRN_CHECK(end <= prompt_->block_count());
  bool whole = true;
  while (whole && usable_blocks_ < end) {
    const size_t count = std::min<size_t>(end - usable_blocks_, kKeysPerLookupMax);
    const absl::Status status = ReadNext(count, engine, budget, &whole);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PrefixRead::ReadNext(size_t count, PrefillEngine* engine, CallBudget* budget,
                                  bool* whole) {
  const size_t first = usable_blocks_;
  const bool all = count == prompt_->block_count();
  const auto begin = prompt_->keys().begin() + static_cast<ptrdiff_t>(first);
  const Prompt asked =
      all ? *prompt_ : Prompt::FromKeys({begin, begin + static_cast<ptrdiff_t>(count)});
  absl::StatusOr<LookupAnswer> answer = absl::UnknownError("not asked");
  const absl::Duration wait = std::clamp(wait_left(), absl::ZeroDuration(),
                                         std::min(budget->left(), absl::Milliseconds(kWaitMsMax)));
  const absl::Status status =
      budget->Spend(options_.lookup_timeout + wait, &lookup_time_, [&](absl::Duration timeout) {
        answer = node_->Lookup(*name_space_, {&asked, 1},
                               {.lease_readers = 1,
                                .lease_ttl = options_.lease_ttl,
                                .wait = std::min(wait, timeout),
                                .by_keys = !options_.by_tokens,
                                .timeout = std::max(timeout - wait, absl::Milliseconds(1))});
        return answer.status();
      });
  *whole = false;
  if (!status.ok()) return status;
  namespace_known_ = answer->namespace_known;
  if (!answer->lease) return absl::OkStatus();
  leases_.push_back({*std::move(answer->lease), 0});
  Lease& lease = leases_.back();
  const absl::Status fetched = Fetch(answer->prompts[0], engine, budget, &lease);
  usable_blocks_ += lease.usable_blocks;
  *whole = lease.usable_blocks == count;
  return fetched;
}

absl::Status PrefixRead::Fetch(const PromptAnswer& answer, PrefillEngine* engine,
                               CallBudget* budget, Lease* lease) {
  const auto keys = absl::MakeConstSpan(prompt_->keys()).subspan(usable_blocks_);
  while (lease->usable_blocks < answer.blocks_leased) {
    const uint32_t begin = lease->usable_blocks;
    const uint32_t count = std::min(answer.blocks_leased - begin, kKeysPerGetMax);
    const size_t block_base = usable_blocks_ + begin;
    const auto place = [&](size_t block, const SegmentId& id) {
      return engine->PlaceOf(block_base + block, id);
    };
    GetResult got;
    const absl::Status status =
        budget->Spend(options_.get_timeout, &get_time_, [&](absl::Duration timeout) {
          got = node_->Get(*name_space_, keys.subspan(begin, count), place,
                           {.lease = lease->lease.id(), .parts = parts_, .timeout = timeout});
          return got.status;
        });
    const auto usable = static_cast<uint32_t>(got.usable_prefix);
    CAIRN_CHECK(usable <= count);
    CountHits(answer, begin, usable);
    lease->usable_blocks += usable;
    mismatched_segments_ += got.mismatches_total;
    if (!status.ok()) return status;
    if (usable < count) break;
  }
  return absl::OkStatus();
}

void PrefixRead::CountHits(const PromptAnswer& answer, uint32_t first, uint32_t count) {
  uint64_t run_begin = 0;
  uint64_t elsewhere = 0;
  for (const BlockStateRun& run : answer.runs) {
    const uint64_t run_end = run_begin + run.count;
    const uint64_t begin = std::max<uint64_t>(first, run_begin);
    const uint64_t end = std::min<uint64_t>(first + count, run_end);
    run_begin = run_end;
    if (begin >= end) continue;
    switch (run.state) {
      case v1::BLOCK_STATE_DEVICE:
        hits_.device += end - begin;
        elsewhere += end - begin;
        break;
      case v1::BLOCK_STATE_DISK:
        hits_.disk += end - begin;
        elsewhere += end - begin;
        break;
      default:
        break;
    }
  }
  // Blocks that were delivered although the node gave no tier for them count here too.
  hits_.host += count - elsewhere;
}

void PrefixRead::EndLeases(CallBudget* budget) {
  absl::Duration spent;
  // The deepest first, so that to the node parents were used last.
  while (!leases_.empty()) {
    Lease& lease = leases_.back();
    // The share's time to live does the rest where this fails.
    (void)budget->Spend(options_.end_timeout, &spent, [&](absl::Duration) {
      return lease.lease.End({&lease.usable_blocks, 1}).status();
    });
    lease.lease.Release();
    leases_.pop_back();
  }
}

}  // namespace cairn
