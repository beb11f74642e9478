// Invariant: one rule of the contract that a simulation watches. Verdict: what was found broken.
//
// A witness with a name. It says a violation in words that name the seed's actors; the first one
// ends the run.
#pragma once

#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/sim/event_log.h"
#include "tests/sim/fleet_view.h"
#include "tests/sim/truth.h"
#include "tests/sim/witness.h"

namespace cairn::sim {

struct Verdict {
  bool ok() const { return invariant.empty(); }

  std::string invariant;  // The first one's name; empty while nothing is broken.
  std::string what;
  // All that broke in the same step.
  std::set<std::string> broken;
};

// What invariants ask. Borrowed; outlives them.
struct Scene {
  const PromptBook* book = nullptr;
  const Truth* truth = nullptr;
  const FleetView* fleet = nullptr;
  const Clock* clock = nullptr;
  EventLog* log = nullptr;
  Verdict* verdict = nullptr;
};

class Invariant : public Witness {
 public:
  Invariant(const Scene* scene, absl::string_view name) : scene_(scene), name_(name) {}

  const std::string& name() const { return name_; }

 protected:
  void Violated(const std::string& what) const;

  const PromptBook& book() const { return *scene_->book; }
  const Truth& truth() const { return *scene_->truth; }
  const FleetView& fleet() const { return *scene_->fleet; }
  absl::Time now() const { return scene_->clock->SteadyNow(); }
  absl::Time wall_now() const { return scene_->clock->WallNow(); }

 private:
  const Scene* const scene_;
  const std::string name_;
};

// "node-1, life 2" or "router, life 1".
std::string NodeName(const Life& node);
std::string ShortHex(absl::string_view bytes);

}  // namespace cairn::sim
