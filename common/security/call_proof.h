// CallProof: what a call brings along to say who makes it, taken out of gRPC's context.
//
// Views into the context; valid as long as that.
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace cairn {

struct CallProof {
  // Values of the metadata `authorization`: one or none, where nobody plays tricks.
  std::vector<absl::string_view> authorization;
  // Values of the metadata `cairn-tenant`.
  std::vector<absl::string_view> tenant;
  // Of the client certificate, which gRPC has verified; empty without one.
  absl::string_view spiffe_id;
  std::vector<absl::string_view> common_names;

  // gRPC's, which the views of the certificate point into: shared with gRPC.
  std::shared_ptr<const grpc::AuthContext> held;

  static CallProof Of(const grpc::ServerContextBase& context);
};

}  // namespace cairn
