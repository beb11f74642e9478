#include "common/security/call_metadata.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/caller_identity.h"
#include "common/security/token_table.h"

namespace cairn {

void CallMetadata::AddTo(grpc::ClientContext* context) const {
  if (token_ != nullptr) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", *token_->Get()));
  }
  if (!tenant_.empty()) context->AddMetadata(kTenantMetadata, tenant_);
}

absl::StatusOr<std::string> CallMetadata::ParseToken(absl::string_view text,
                                                     absl::string_view file) {
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (!printable || token.size() < kTokenBytesMin || token.size() > kTokenBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": must hold one line, a token of ",
                                                   kTokenBytesMin, " to ", kTokenBytesMax,
                                                   " printable characters without spaces"));
  }
  return std::string(token);
}

}  // namespace cairn
