// SimPrompt: a prompt of the workload, its tokens with it. SimRegion: one region of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/prompt.h"

namespace cairn::sim {

struct SimRegion {
  Scope scope;
  std::vector<uint32_t> tokens;
};

class SimPrompt {
 public:
  // Borrows the namespace. REQUIRES: the regions make a prompt.
  SimPrompt(const BlockHasher& hasher, const NamespaceHandle* name_space,
            std::vector<SimRegion> regions);

  SimPrompt(const SimPrompt&) = delete;
  SimPrompt& operator=(const SimPrompt&) = delete;

  const NamespaceHandle& name_space() const { return *name_space_; }
  const Prompt& prompt() const { return prompt_; }
  const std::vector<SimRegion>& regions() const { return regions_; }
  // Whose request it is: the tenant of its last region.
  const std::string& tenant() const { return regions_.back().scope.tenant; }

 private:
  static Prompt Make(const BlockHasher& hasher, const NamespaceHandle& name_space,
                     const std::vector<SimRegion>& regions);

  const NamespaceHandle* const name_space_;
  const std::vector<SimRegion> regions_;
  const Prompt prompt_;
};

}  // namespace cairn::sim
