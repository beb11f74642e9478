// Namespaces between the wire and common/identity.
#pragma once

#include "absl/status/statusor.h"
#include "cairn/v1/namespace.pb.h"
#include "common/identity/namespace.h"

namespace cairn {

// A valid namespace, or ValidateNamespace's status (INVALID_ARGUMENT, FAILED_PRECONDITION), which
// names the field, its value and what is allowed. Enum values that this version does not know are
// refused like any other number out of range.
absl::StatusOr<Namespace> NamespaceFromProto(const v1::Namespace& message);

// The message of a namespace that ValidateNamespace accepts.
v1::Namespace NamespaceToProto(const Namespace& name_space);

}  // namespace cairn
