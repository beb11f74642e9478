#include "cache_node/tenants/tenant_limits.h"

#include <utility>

namespace cairn::node {

absl::StatusOr<std::unique_ptr<TenantQuotaFile>> OpenTenantQuotas(const std::string& path,
                                                                  ByteSize kept_max,
                                                                  FileReader reader) {
  return TenantQuotaFile::Open(
      path,
      [kept_max](absl::string_view text, absl::string_view file) {
        return ParseTenantQuotas(text, file, kept_max);
      },
      std::move(reader));
}

TenantLimits::TenantLimits(std::unique_ptr<TenantQuotaFile> file, BlockStore* store,
                           TenantRates* rates)
    : file_(std::move(file)), store_(store), rates_(rates) {
  Apply();
}

absl::Status TenantLimits::Poll() {
  absl::Status status = file_->Poll();
  if (file_->Get() != applied_) Apply();
  return status;
}

void TenantLimits::Apply() {
  applied_ = file_->Get();
  store_->SetQuotas(applied_->quotas);
  rates_->SetLimits(applied_->rates);
}

}  // namespace cairn::node
