#include "router/index/namespace_directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/identity/layout.h"

namespace cairn::router {

NamespaceDirectory::NamespaceDirectory(size_t holders, size_t namespaces_max)
    : namespaces_max_(namespaces_max), generations_(holders) {
  CAIRN_CHECK(namespaces_max > 0);
}

void NamespaceDirectory::GrowTo(size_t holders) {
  CAIRN_CHECK(holders >= generations_.size());
  generations_.resize(holders);
}

absl::Status NamespaceDirectory::Registered(HolderIndex holder, const Fingerprint& fingerprint,
                                            uint32_t block_tokens, KeyScheme key_scheme) {
  if (block_tokens == 0 || block_tokens > kBlockTokensMax) {
    return absl::InvalidArgumentError(absl::StrCat("a registered namespace has blocks of ",
                                                   block_tokens, " tokens; 1 to ", kBlockTokensMax,
                                                   " are allowed"));
  }
  Entry* entry = FindOrMake(fingerprint);
  if (entry == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the holders name more than ", namespaces_max_, " namespaces"));
  }
  const bool is_new = entry->block_tokens == 0;
  if (!is_new && (entry->block_tokens != block_tokens || entry->key_scheme != key_scheme)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a namespace of ", block_tokens, " tokens a block and key scheme ",
                     static_cast<uint32_t>(key_scheme), " is known with ", entry->block_tokens,
                     " and ", static_cast<uint32_t>(entry->key_scheme)));
  }
  entry->block_tokens = block_tokens;
  entry->key_scheme = key_scheme;
  Say(holder, /*retired=*/false, entry);
  return absl::OkStatus();
}

absl::Status NamespaceDirectory::Retired(HolderIndex holder, const Fingerprint& fingerprint) {
  Entry* entry = FindOrMake(fingerprint);
  if (entry == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the holders name more than ", namespaces_max_, " namespaces"));
  }
  Say(holder, /*retired=*/true, entry);
  return absl::OkStatus();
}

void NamespaceDirectory::Forget(HolderIndex holder) {
  CAIRN_CHECK(holder < generations_.size());
  ++generations_[holder];
}

const NamespaceDirectory::Entry* NamespaceDirectory::FindRegistered(
    const Fingerprint& fingerprint) const {
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return nullptr;
  const Entry& entry = found->second;
  const bool registered =
      std::any_of(entry.words.begin(), entry.words.end(),
                  [this](const Word& word) { return Counts(word) && !word.retired; });
  return registered ? &entry : nullptr;
}

std::optional<uint32_t> NamespaceDirectory::BlockTokens(const Fingerprint& fingerprint) const {
  const Entry* const entry = FindRegistered(fingerprint);
  if (entry == nullptr) return std::nullopt;
  return entry->block_tokens;
}

std::optional<KeyRules> NamespaceDirectory::RulesOf(const Fingerprint& fingerprint) const {
  const Entry* const entry = FindRegistered(fingerprint);
  if (entry == nullptr) return std::nullopt;
  return KeyRules{fingerprint, entry->key_scheme, entry->block_tokens};
}

bool NamespaceDirectory::RetiredAt(HolderIndex holder, const Fingerprint& fingerprint) const {
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  return std::any_of(entry.words.begin(), entry.words.end(), [&](const Word& word) {
    return word.holder == holder && Counts(word) && word.retired;
  });
}

NamespaceDirectory::Entry* NamespaceDirectory::FindOrMake(const Fingerprint& fingerprint) {
  if (const auto found = entries_.find(fingerprint); found != entries_.end()) {
    return &found->second;
  }
  if (entries_.size() >= namespaces_max_) DropForgotten();
  if (entries_.size() >= namespaces_max_) return nullptr;
  return &entries_[fingerprint];
}

void NamespaceDirectory::Say(HolderIndex holder, bool retired, Entry* entry) {
  CAIRN_CHECK(holder < generations_.size());
  const auto said = std::find_if(entry->words.begin(), entry->words.end(),
                                 [holder](const Word& word) { return word.holder == holder; });
  const Word word = {holder, retired, generations_[holder]};
  if (said == entry->words.end()) {
    entry->words.push_back(word);
  } else {
    *said = word;
  }
}

void NamespaceDirectory::DropForgotten() {
  absl::erase_if(entries_, [this](const auto& entry) {
    return std::none_of(entry.second.words.begin(), entry.second.words.end(),
                        [this](const Word& word) { return Counts(word); });
  });
}

}  // namespace cairn::router
