#include "cache_node/tenants/public_scope.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/rpc/error_reason.h"

namespace cairn::node {

absl::StatusOr<std::unique_ptr<PublicPrefixFile>> OpenPublicPrefixes(const std::string& path) {
  return PublicPrefixFile::Open(path, PublicPrefixes::Parse, ReadSecurityFile);
}

PublicScope::PublicScope(std::unique_ptr<PublicPrefixFile> file, BlockStore* store)
    : file_(std::move(file)), store_(store), none_(std::make_shared<const PublicPrefixes>()) {}

std::shared_ptr<const PublicPrefixes> PublicScope::Listed() const {
  return file_ == nullptr ? none_ : file_->Get();
}

absl::Status PublicScope::Check(KeyScheme scheme, absl::Span<const BlockKey> keys) const {
  CAIRN_CHECK(!keys.empty());
  const std::shared_ptr<const PublicPrefixes> listed = Listed();
  const auto from = scheme == KeyScheme::kCairn ? keys.end() - 1 : keys.begin();
  const auto foreign = std::find_if(
      from, keys.end(), [&listed](const BlockKey& key) { return !listed->EndsWith(key); });
  if (foreign == keys.end()) return absl::OkStatus();
  CountRefused();
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "keys: ", ToHex(foreign->view()),
          " ends no prefix of the tenant \"public\" that the operator lists; use a scope of your "
          "own tenant, or have the key added to the node's --public-prefix-file",
          file_ == nullptr ? " (it was started without one)" : "")),
      "PUBLIC_PREFIX_NOT_LISTED");
}

absl::Status PublicScope::Poll() {
  absl::Status status = file_ == nullptr ? absl::OkStatus() : file_->Poll();
  const std::shared_ptr<const PublicPrefixes> listed = Listed();
  if (listed == swept_) return status;
  // At first the store may hold what an earlier run of the node was let write.
  if (swept_ == nullptr || !swept_->IsWithin(*listed)) {
    uint64_t removed_blocks = 0;
    const absl::Status kept = store_->KeepPublic(listed->last_keys(), &removed_blocks);
    removed_blocks_.fetch_add(removed_blocks, std::memory_order_relaxed);
    // Blocks on disk are still being found, or move, or the tier is not open: it is tried again.
    if (absl::IsUnavailable(kept)) return status;
    if (!kept.ok()) {
      return absl::Status(
          kept.code(),
          absl::StrCat("blocks of the tenant \"public\" that no list leads to any more cannot be "
                       "read, but the disk could not be told, so until a restart: ",
                       kept.message()));
    }
  }
  swept_ = listed;
  return status;
}

}  // namespace cairn::node
