#include "tests/cluster/disk_history.h"

#include <algorithm>

namespace cairn::testing {

DiskHistory::PromptName DiskHistory::NewPrompt(absl::string_view salt) {
  absl::MutexLock lock(&mutex_);
  return {next_number_++, std::string(salt)};
}

void DiskHistory::WasPut(const PromptName& prompt) {
  absl::MutexLock lock(&mutex_);
  gone_.emplace(prompt, false);
}

std::vector<DiskHistory::PromptName> DiskHistory::PutSoFar(absl::string_view salt) const {
  absl::MutexLock lock(&mutex_);
  std::vector<PromptName> prompts;
  for (const auto& [prompt, gone] : gone_) {
    if (salt.empty() || prompt.salt == salt) prompts.push_back(prompt);
  }
  return prompts;
}

void DiskHistory::AreGone(const std::vector<PromptName>& prompts) {
  absl::MutexLock lock(&mutex_);
  for (const PromptName& prompt : prompts) gone_[prompt] = true;
}

bool DiskHistory::IsGone(const PromptName& prompt) const {
  absl::MutexLock lock(&mutex_);
  const auto it = gone_.find(prompt);
  return it != gone_.end() && it->second;
}

size_t DiskHistory::gone() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(gone_.begin(), gone_.end(), [](const auto& entry) { return entry.second; }));
}

}  // namespace cairn::testing
