// Scope: whose cached blocks these are, said with each request; nothing is registered for it.
//
// Two scopes that differ in any field share no key. Where `tenant` comes from (the authenticated
// caller, never a bare field of a request) is the caller's concern, not this file's.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/bytes16.h"

namespace cairn {

struct Scope {
  std::string tenant;
  std::string adapter;  // name@digest, or empty for none.
  std::string salt;     // Raw bytes.

  friend bool operator==(const Scope&, const Scope&) = default;
};

// INVALID_ARGUMENT naming the field when a string is not UTF-8 or anything is over 256 bytes.
absl::Status ValidateScope(const Scope& scope);

// The 16 bytes that stand where a parent's key would for the first block of `scope`. `parent` is
// the fingerprint's root(), or the last block's key of the region before. Defined for any scope;
// callers that got it from outside validate it first.
BlockKey EnterScope(const BlockKey& parent, const Scope& scope);

}  // namespace cairn
