// TenantLedger: who is charged for how many bytes, the budgets of all and the quotas of each.
//
// A Charge is taken with a slot and given back with it, whatever happened to the block in between
// (reserved, present, gone but pinned): a slot's bytes are in exactly one charge. Leased and
// reserved bytes are counted beside it against budgets. Not thread-safe: under the store's lock. A
// Charge must not outlive the ledger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "cache_node/store/tenant_quotas.h"
#include "cache_node/tiers/slot_class.h"

namespace cairn::node {

class TenantLedger {
 public:
  static constexpr uint32_t kTenantsMax = 65536;

  struct Budgets {
    uint64_t leased_bytes_max = 0;    // Over all tenants.
    uint64_t reserved_bytes_max = 0;  // Over all tenants.
    uint64_t stays_bytes_max = 0;     // Over all tenants.
  };
  struct Usage {
    uint64_t charged_bytes = 0;
    uint64_t disk_bytes = 0;
    uint64_t device_bytes = 0;
    uint64_t leased_bytes = 0;
    uint64_t reserved_bytes = 0;
    uint64_t stays_bytes = 0;
  };

  // Move-only. Gives its bytes back when destroyed.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    ~Charge();
    uint64_t bytes() const { return bytes_; }
    TenantIndex tenant() const { return tenant_; }

   private:
    friend class TenantLedger;
    Charge(TenantLedger* ledger, TenantIndex tenant, uint64_t bytes);
    TenantLedger* ledger_ = nullptr;
    TenantIndex tenant_ = 0;
    uint64_t bytes_ = 0;
  };

  explicit TenantLedger(const Budgets& budgets);
  // All charges were given back before.
  ~TenantLedger();
  TenantLedger(const TenantLedger&) = delete;
  TenantLedger& operator=(const TenantLedger&) = delete;

  // The tenant's number, given out on first sight and kept for good; 0 when kTenantsMax are known
  // already.
  TenantIndex IndexOf(absl::string_view tenant);
  // 0 for a tenant never seen.
  TenantIndex Find(absl::string_view tenant) const;
  // The reference lives until the next IndexOf.
  const std::string& NameOf(TenantIndex tenant) const;

  // For tenants known already, and those to come. Until then nobody has a quota. Who has more
  // than a new quota allows keeps it here; ExcessOf says how much.
  void SetQuotas(TenantQuotas quotas);

  const Budgets& budgets() const { return budgets_; }

  // A tenant below is one that IndexOf gave out.
  // Charged bytes over its quota.
  uint64_t ExcessOf(TenantIndex tenant) const;
  // Bytes that are to stay over its quota of them, or over that of all its bytes.
  uint64_t StaysExcessOf(TenantIndex tenant) const;
  // Payload that came to disk, or left it.
  void AddDisk(TenantIndex tenant, uint64_t bytes);
  void RemoveDisk(TenantIndex tenant, uint64_t bytes);
  // Slots of a device that it took, or that are free again.
  void AddDevice(TenantIndex tenant, uint64_t bytes);
  void RemoveDevice(TenantIndex tenant, uint64_t bytes);
  bool HasDiskRoom(TenantIndex tenant, uint64_t bytes) const;

  // Whether the tenant may be charged `bytes` more.
  bool HasRoom(TenantIndex tenant, uint64_t bytes) const;
  // Whether so many bytes of its blocks are more than what is kept for it, so that others may have
  // their room.
  bool CanSpare(TenantIndex tenant, uint64_t bytes) const;
  // Whether with `bytes` more it still has no more than what is kept for it.
  bool WithinKept(TenantIndex tenant, uint64_t bytes) const;

  Charge Take(TenantIndex tenant, uint64_t bytes);

  // False, and nothing is counted, when the budget or the tenant's quota would be exceeded. What is
  // ended was counted before.
  bool TryLease(TenantIndex tenant, uint64_t bytes);
  void EndLease(TenantIndex tenant, uint64_t bytes);
  bool TryReserve(TenantIndex tenant, uint64_t bytes);
  void EndReserve(TenantIndex tenant, uint64_t bytes);
  bool TryStay(TenantIndex tenant, uint64_t bytes);
  void EndStay(TenantIndex tenant, uint64_t bytes);

  Usage UsageOf(TenantIndex tenant) const;
  Usage Total() const { return total_; }
  // Numbers run from 1 to this.
  uint32_t tenant_count() const;

 private:
  struct Account {
    std::string name;
    TenantQuota quota;
    Usage usage;
  };
  Account& AccountOf(TenantIndex tenant);
  const Account& AccountOf(TenantIndex tenant) const;
  void GiveBack(TenantIndex tenant, uint64_t bytes);
  bool TryCount(TenantIndex tenant, uint64_t Usage::*what, uint64_t tenant_max, uint64_t all_max,
                uint64_t bytes);
  // `name`: of what is counted, for the message of a bug.
  void EndCount(TenantIndex tenant, uint64_t Usage::*what, absl::string_view name, uint64_t bytes);

  const Budgets budgets_;
  TenantQuotas quotas_;
  Usage total_;
  std::vector<Account> accounts_;  // By number; 0 is unused.
  absl::flat_hash_map<std::string, TenantIndex> numbers_;
};

}  // namespace cairn::node
