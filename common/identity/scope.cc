#include "common/identity/scope.h"

#include <cstring>

#include "common/identity/frame.h"
#include "common/identity/sha256.h"

namespace cairn {

absl::Status ValidateScope(const Scope& scope) {
  absl::Status status = ValidateStringField("scope.tenant", scope.tenant);
  if (!status.ok()) return status;
  status = ValidateStringField("scope.adapter", scope.adapter);
  if (!status.ok()) return status;
  return ValidateRawField("scope.salt", scope.salt);
}

BlockKey EnterScope(const BlockKey& parent, const Scope& scope) {
  std::string message = "cairn/scope/v1";
  message.append(parent.view().data(), parent.view().size());
  AppendFramed(&message, 1, scope.tenant);
  AppendFramed(&message, 2, scope.adapter);
  AppendFramed(&message, 3, scope.salt);
  const Sha256Digest digest = Sha256(message);
  BlockKey key;
  std::memcpy(key.bytes.data(), digest.data(), kKeyBytes);
  return key;
}

}  // namespace cairn
