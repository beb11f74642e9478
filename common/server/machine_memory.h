// MachineMemory: how much memory this process may use, as the machine and its cgroups say.
//
// Read once at start. Reads /proc and /sys/fs/cgroup under a root directory, so that tests give it
// a tree of files. Knows cgroup v1, v2 and both mounted at once; of nested cgroups the least
// counts, also of those above a container that are not visible where the kernel reports them.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/server/byte_size.h"

namespace cairn {

struct MachineMemory {
  ByteSize physical;
  // The least limit of any cgroup that this process is in, and the file that says so.
  std::optional<ByteSize> cgroup;
  std::string cgroup_file;

  // The smaller of both.
  ByteSize Usable() const;

  // OK if `limit` may be used here; else FAILED_PRECONDITION that names `limit_flag`, its value and
  // which file allows how much.
  absl::Status CheckAllows(ByteSize limit, absl::string_view limit_flag) const;
};

// `root` is "/" but for tests. FAILED_PRECONDITION if /proc/meminfo does not tell the physical
// memory; a cgroup file that is absent is no limit.
absl::StatusOr<MachineMemory> ReadMachineMemory(absl::string_view root);

}  // namespace cairn
