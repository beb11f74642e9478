#include "common/server/memory_limit.h"

#include "common/server/machine_memory.h"

namespace cairn {

absl::StatusOr<ByteSize> MemoryLimitOf(ByteSize asked, const MemorySum& sum,
                                       absl::string_view root) {
  constexpr char kFlag[] = "memory-limit";
  const absl::StatusOr<MachineMemory> machine = ReadMachineMemory(root);
  if (!machine.ok()) return machine.status();
  ByteSize limit = asked;
  if (limit.bytes() == 0) {
    limit = machine->cgroup.has_value() && *machine->cgroup < machine->physical
                ? *machine->cgroup
                : ByteSize(machine->physical.bytes() / 100 * kPhysicalPercent);
  } else if (absl::Status status = machine->CheckAllows(limit, kFlag); !status.ok()) {
    return status;
  }
  if (absl::Status status = sum.CheckWithin(limit, kFlag); !status.ok()) return status;
  return limit;
}

}  // namespace cairn
