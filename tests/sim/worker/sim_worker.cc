#include "tests/sim/worker/sim_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn::sim {

SimWorker::SimWorker(World* world, const Options& options, const Life& life, Fleet* fleet,
                     Workload* workload)
    : world_(world),
      options_(options),
      fleet_(fleet),
      workload_(workload),
      dice_(world->seed, absl::StrCat("worker ", life.place, " life ", life.number)) {
  for (size_t i = 0; i < options.jobs; ++i) TakeNextSoon();
}

void SimWorker::TakeNextSoon() {
  world_->scheduler.After(dice_.Between(absl::ZeroDuration(), options_.think_most), options_.host,
                          [this] { TakeNext(); });
}

void SimWorker::TakeNext() {
  const SimPrompt* prompt = workload_->Next();
  if (prompt == nullptr) return;
  Serve(prompt, [this](const RequestJob::Outcome& outcome) {
    workload_->Ended(outcome);
    TakeNextSoon();
  });
}

void SimWorker::Serve(const SimPrompt* prompt, RequestJob::Done done) {
  const uint64_t number = next_job_++;
  const ClientSide side{world_, options_.host,
                        Caller{.id = absl::StrCat(prompt->tenant(), "'s worker ", options_.host),
                               .tenant = prompt->tenant()},
                        &dice_};
  world_->log.Note(absl::StrCat("worker at host ", options_.host, " begins job ", number, " of ",
                                prompt->tenant(), ", ", prompt->prompt().block_count(), " blocks"));
  jobs_[number] = std::make_unique<RequestJob>(
      side, fleet_, prompt,
      [this, number, done = std::move(done)](const RequestJob::Outcome& outcome) {
        world_->log.Note(absl::StrCat(
            "worker at host ", options_.host, " ends job ", number, ": ", outcome.hit_blocks,
            " of ", outcome.blocks, " hit, ",
            outcome.stored.ok() ? "stored" : "not stored: ", outcome.stored.message()));
        const RequestJob::Outcome how = outcome;
        const auto ended = jobs_.extract(number);
        done(how);
      });
}

absl::Time SimWorker::oldest_job_began_at() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [number, job] : jobs_) oldest = std::min(oldest, job->began_at());
  return oldest;
}

}  // namespace cairn::sim
