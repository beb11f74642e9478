// CallMetadata: what a client of ours sends with each call: its bearer token, and the tenant that
// it acts for. Thread-safe; immutable but for the token, which is re-read (ClientSecurity).
#pragma once

#include <grpcpp/client_context.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/watched_file.h"

namespace cairn {

class CallMetadata {
 public:
  // Borrows the file, which outlives it; null sends no token. An empty tenant is not sent: the
  // server takes the only one that the caller may act for.
  CallMetadata(const WatchedFile<std::string>* token, std::string tenant)
      : token_(token), tenant_(std::move(tenant)) {}

  // Before the call begins.
  void AddTo(grpc::ClientContext* context) const;

  // A token file of a client: one line, the token. INVALID_ARGUMENT naming the file, never what it
  // holds.
  static absl::StatusOr<std::string> ParseToken(absl::string_view text, absl::string_view file);

 private:
  const WatchedFile<std::string>* const token_;
  const std::string tenant_;
};

}  // namespace cairn
