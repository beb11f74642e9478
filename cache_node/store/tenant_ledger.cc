#include "cache_node/store/tenant_ledger.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace cairn::node {
namespace {

bool Fits(uint64_t used, uint64_t more, uint64_t max) { return used <= max && more <= max - used; }

// More than it may hold at all would never make room.
uint64_t StaysMaxOf(const TenantQuota& quota) {
  return std::min(quota.stays_bytes_max, quota.host_bytes_max);
}

}  // namespace

TenantLedger::Charge::Charge(TenantLedger* ledger, TenantIndex tenant, uint64_t bytes)
    : ledger_(ledger), tenant_(tenant), bytes_(bytes) {}

TenantLedger::Charge::Charge(Charge&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      tenant_(std::exchange(other.tenant_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

TenantLedger::Charge& TenantLedger::Charge::operator=(Charge&& other) noexcept {
  Charge taken(std::move(other));
  std::swap(ledger_, taken.ledger_);
  std::swap(tenant_, taken.tenant_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

TenantLedger::Charge::~Charge() {
  if (ledger_ != nullptr) ledger_->GiveBack(tenant_, bytes_);
}

TenantLedger::TenantLedger(const Budgets& budgets) : budgets_(budgets), accounts_(1) {}

TenantLedger::~TenantLedger() { CAIRN_CHECK(total_.charged_bytes == 0); }

TenantIndex TenantLedger::IndexOf(absl::string_view tenant) {
  const TenantIndex known = Find(tenant);
  if (known != 0 || accounts_.size() > kTenantsMax) return known;
  const auto number = static_cast<TenantIndex>(accounts_.size());
  accounts_.push_back({std::string(tenant), quotas_.Of(tenant), {}});
  numbers_.emplace(std::string(tenant), number);
  return number;
}

TenantIndex TenantLedger::Find(absl::string_view tenant) const {
  auto it = numbers_.find(tenant);
  return it == numbers_.end() ? 0 : it->second;
}

const std::string& TenantLedger::NameOf(TenantIndex tenant) const { return AccountOf(tenant).name; }

void TenantLedger::SetQuotas(TenantQuotas quotas) {
  quotas_ = std::move(quotas);
  for (Account& account : accounts_) account.quota = quotas_.Of(account.name);
}

uint64_t TenantLedger::ExcessOf(TenantIndex tenant) const {
  const Account& account = AccountOf(tenant);
  const uint64_t max = account.quota.host_bytes_max;
  return account.usage.charged_bytes > max ? account.usage.charged_bytes - max : 0;
}

uint64_t TenantLedger::StaysExcessOf(TenantIndex tenant) const {
  const Account& account = AccountOf(tenant);
  const uint64_t max = StaysMaxOf(account.quota);
  return account.usage.stays_bytes > max ? account.usage.stays_bytes - max : 0;
}

void TenantLedger::AddDisk(TenantIndex tenant, uint64_t bytes) {
  AccountOf(tenant).usage.disk_bytes += bytes;
  total_.disk_bytes += bytes;
}

void TenantLedger::RemoveDisk(TenantIndex tenant, uint64_t bytes) {
  Usage& usage = AccountOf(tenant).usage;
  CAIRN_CHECK(usage.disk_bytes >= bytes && total_.disk_bytes >= bytes);
  usage.disk_bytes -= bytes;
  total_.disk_bytes -= bytes;
}

void TenantLedger::AddDevice(TenantIndex tenant, uint64_t bytes) {
  AccountOf(tenant).usage.device_bytes += bytes;
  total_.device_bytes += bytes;
}

void TenantLedger::RemoveDevice(TenantIndex tenant, uint64_t bytes) {
  Usage& usage = AccountOf(tenant).usage;
  CAIRN_CHECK(usage.device_bytes >= bytes && total_.device_bytes >= bytes);
  usage.device_bytes -= bytes;
  total_.device_bytes -= bytes;
}

bool TenantLedger::HasDiskRoom(TenantIndex tenant, uint64_t bytes) const {
  const Account& account = AccountOf(tenant);
  return Fits(account.usage.disk_bytes, bytes, account.quota.disk_bytes_max);
}

bool TenantLedger::HasRoom(TenantIndex tenant, uint64_t bytes) const {
  const Account& account = AccountOf(tenant);
  return Fits(account.usage.charged_bytes, bytes, account.quota.host_bytes_max);
}

bool TenantLedger::CanSpare(TenantIndex tenant, uint64_t bytes) const {
  const Account& account = AccountOf(tenant);
  return account.quota.host_bytes_kept == 0 ||
         Fits(account.quota.host_bytes_kept, bytes, account.usage.charged_bytes);
}

bool TenantLedger::WithinKept(TenantIndex tenant, uint64_t bytes) const {
  const Account& account = AccountOf(tenant);
  return Fits(account.usage.charged_bytes, bytes, account.quota.host_bytes_kept);
}

TenantLedger::Charge TenantLedger::Take(TenantIndex tenant, uint64_t bytes) {
  AccountOf(tenant).usage.charged_bytes += bytes;
  total_.charged_bytes += bytes;
  return Charge(this, tenant, bytes);
}

void TenantLedger::GiveBack(TenantIndex tenant, uint64_t bytes) {
  Usage& usage = AccountOf(tenant).usage;
  CAIRN_CHECK(usage.charged_bytes >= bytes && total_.charged_bytes >= bytes);
  usage.charged_bytes -= bytes;
  total_.charged_bytes -= bytes;
}

bool TenantLedger::TryCount(TenantIndex tenant, uint64_t Usage::*what, uint64_t tenant_max,
                            uint64_t all_max, uint64_t bytes) {
  Usage& usage = AccountOf(tenant).usage;
  CAIRN_CHECK(total_.*what <= all_max);
  if (!Fits(total_.*what, bytes, all_max) || !Fits(usage.*what, bytes, tenant_max)) return false;
  usage.*what += bytes;
  total_.*what += bytes;
  return true;
}

void TenantLedger::EndCount(TenantIndex tenant, uint64_t Usage::*what, absl::string_view name,
                            uint64_t bytes) {
  Usage& usage = AccountOf(tenant).usage;
  CAIRN_CHECK_MSG(usage.*what >= bytes && total_.*what >= bytes, name);
  usage.*what -= bytes;
  total_.*what -= bytes;
}

bool TenantLedger::TryLease(TenantIndex tenant, uint64_t bytes) {
  return TryCount(tenant, &Usage::leased_bytes, AccountOf(tenant).quota.leased_bytes_max,
                  budgets_.leased_bytes_max, bytes);
}

void TenantLedger::EndLease(TenantIndex tenant, uint64_t bytes) {
  EndCount(tenant, &Usage::leased_bytes, "leased_bytes", bytes);
}

bool TenantLedger::TryReserve(TenantIndex tenant, uint64_t bytes) {
  return TryCount(tenant, &Usage::reserved_bytes, AccountOf(tenant).quota.reserved_bytes_max,
                  budgets_.reserved_bytes_max, bytes);
}

void TenantLedger::EndReserve(TenantIndex tenant, uint64_t bytes) {
  EndCount(tenant, &Usage::reserved_bytes, "reserved_bytes", bytes);
}

bool TenantLedger::TryStay(TenantIndex tenant, uint64_t bytes) {
  return TryCount(tenant, &Usage::stays_bytes, StaysMaxOf(AccountOf(tenant).quota),
                  budgets_.stays_bytes_max, bytes);
}

void TenantLedger::EndStay(TenantIndex tenant, uint64_t bytes) {
  EndCount(tenant, &Usage::stays_bytes, "stays_bytes", bytes);
}

TenantLedger::Usage TenantLedger::UsageOf(TenantIndex tenant) const {
  return AccountOf(tenant).usage;
}

uint32_t TenantLedger::tenant_count() const { return static_cast<uint32_t>(accounts_.size() - 1); }

TenantLedger::Account& TenantLedger::AccountOf(TenantIndex tenant) {
  CAIRN_CHECK(tenant != 0 && tenant < accounts_.size());
  return accounts_[tenant];
}

const TenantLedger::Account& TenantLedger::AccountOf(TenantIndex tenant) const {
  CAIRN_CHECK(tenant != 0 && tenant < accounts_.size());
  return accounts_[tenant];
}

}  // namespace cairn::node
