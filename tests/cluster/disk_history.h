// DiskHistory: which prompts were put and cleared over the lives of one node, as its clients were
// answered: what must be gone, and what may be there.
//
// A prompt's number is given once, so that what is gone stays gone for good. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace cairn::testing {

class DiskHistory {
 public:
  struct PromptName {
    uint32_t number = 0;
    std::string salt;

    friend bool operator<(const PromptName& a, const PromptName& b) {
      return std::tie(a.number, a.salt) < std::tie(b.number, b.salt);
    }
  };

  // One that nobody put yet.
  PromptName NewPrompt(absl::string_view salt);
  // Its put was answered.
  void WasPut(const PromptName& prompt);

  // Of this salt, or of all with an empty one, what was put by now.
  std::vector<PromptName> PutSoFar(absl::string_view salt = {}) const;
  // A clear or retirement that began after they were put was answered.
  void AreGone(const std::vector<PromptName>& prompts);

  // Must not be found by whoever asks from now on.
  bool IsGone(const PromptName& prompt) const;
  size_t gone() const;

 private:
  mutable absl::Mutex mutex_;
  uint32_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<PromptName, bool> gone_ ABSL_GUARDED_BY(mutex_);  // Of those that were put.
};

}  // namespace cairn::testing
