// TenantLimits: the quota file of a node, and what its store and its rates are told of it, also
// when it changes.
//
// Poll belongs to a thread of the owner's. A file that cannot be read or means nothing changes
// nothing, and Poll says why. Borrows the store and the rates, which outlive it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_node/store/block_store.h"
#include "cache_node/tenants/tenant_quota_file.h"
#include "cache_node/tenants/tenant_rates.h"
#include "common/security/watched_file.h"
#include "common/server/byte_size.h"

namespace cairn::node {

using TenantQuotaFile = WatchedFile<TenantQuotaLines>;

// Not OK when the file cannot be read or means nothing: a node does not start without its limits.
absl::StatusOr<std::unique_ptr<TenantQuotaFile>> OpenTenantQuotas(const std::string& path,
                                                                  ByteSize kept_max,
                                                                  FileReader reader);

class TenantLimits {
 public:
  // They hold when it returns.
  TenantLimits(std::unique_ptr<TenantQuotaFile> file, BlockStore* store, TenantRates* rates);

  absl::Status Poll();

 private:
  void Apply();

  const std::unique_ptr<TenantQuotaFile> file_;
  BlockStore* const store_;
  TenantRates* const rates_;
  std::shared_ptr<const TenantQuotaLines> applied_;  // As the file keeps it.
};

}  // namespace cairn::node
