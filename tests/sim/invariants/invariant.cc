#include "tests/sim/invariants/invariant.h"

#include "absl/strings/str_cat.h"
#include "common/base/hex.h"

namespace cairn::sim {

void Invariant::Violated(const std::string& what) const {
  scene_->log->Note(absl::StrCat("VIOLATED ", name_, ": ", what));
  scene_->verdict->broken.insert(name_);
  if (!scene_->verdict->ok()) return;
  scene_->verdict->invariant = name_;
  scene_->verdict->what = what;
}

std::string NodeName(const Life& node) {
  return absl::StrCat("node-", node.place, ", life ", node.number);
}

std::string ShortHex(absl::string_view bytes) { return ToHex(bytes.substr(0, 4)); }

}  // namespace cairn::sim
