#include "common/server/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cairn {
namespace {

// The files read here are a few lines; what is beyond this is not ours.
constexpr size_t kFileBytesMax = 64 << 10;
constexpr int kCgroupDepthMax = 64;
// cgroup v1 writes "no limit" as the largest multiple of a page; nobody has so much.
constexpr uint64_t kLimitBytesMax = uint64_t{1} << 60;

// Empty when the file cannot be read: most of those asked for need not exist.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::string text(kFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

void Lower(uint64_t bytes, const std::string& file, MachineMemory& memory) {
  if (bytes >= kLimitBytesMax) return;
  if (memory.cgroup.has_value() && memory.cgroup->bytes() <= bytes) return;
  memory.cgroup = ByteSize(bytes);
  memory.cgroup_file = file;
}

// A file with one number of bytes, or "max".
void LowerToFile(const std::string& file, MachineMemory& memory) {
  uint64_t bytes = 0;
  if (absl::SimpleAtoi(ReadFile(file), &bytes)) Lower(bytes, file, memory);
}

// The number after `key` in lines of "key number ...".
std::optional<uint64_t> FindNumber(absl::string_view text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t number = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtoi(words[1], &number)) return number;
  }
  return std::nullopt;
}

// Applies the limit named `file` of `group` and of every group above it below `mount`. A container
// may see its own group as the mount itself while /proc names the path outside: the directories
// that are not there are skipped, the mount is not.
void LowerAlongPath(const std::string& mount, absl::string_view group, absl::string_view file,
                    MachineMemory& memory) {
  // Outside of the namespace's root nothing is visible.
  if (absl::StrContains(group, "..")) group = "/";
  for (int depth = 0; depth < kCgroupDepthMax; ++depth) {
    while (absl::ConsumeSuffix(&group, "/")) {
    }
    const std::string directory = absl::StrCat(mount, group);
    LowerToFile(absl::StrCat(directory, "/", file), memory);
    if (group.empty()) return;
    group = group.substr(0, group.rfind('/'));
  }
}

void ReadCgroupLine(absl::string_view line, const std::string& root, MachineMemory& memory) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (fields.size() != 3 || !absl::StartsWith(fields[2], "/")) return;
  const std::string cgroups = absl::StrCat(root, "/sys/fs/cgroup");
  if (fields[0] == "0" && fields[1].empty()) {
    LowerAlongPath(cgroups, fields[2], "memory.max", memory);
    return;
  }
  const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
  if (std::find(controllers.begin(), controllers.end(), "memory") == controllers.end()) return;
  const std::string mount = absl::StrCat(cgroups, "/memory");
  LowerAlongPath(mount, fields[2], "memory.limit_in_bytes", memory);
  // Counts the groups above a container too, which are not visible from inside.
  for (absl::string_view group : {fields[2], absl::string_view()}) {
    const std::string file = absl::StrCat(mount, group, "/memory.stat");
    const auto bytes = FindNumber(ReadFile(file), "hierarchical_memory_limit");
    if (bytes.has_value()) Lower(*bytes, file, memory);
  }
}

}  // namespace

ByteSize MachineMemory::Usable() const {
  return cgroup.has_value() ? std::min(physical, *cgroup) : physical;
}

absl::Status MachineMemory::CheckAllows(ByteSize limit, absl::string_view limit_flag) const {
  if (limit <= Usable()) return absl::OkStatus();
  const bool by_cgroup = cgroup.has_value() && *cgroup < physical;
  return absl::FailedPreconditionError(
      absl::StrCat("--", limit_flag, "=", limit.ToString(), ": this process may use ",
                   Usable().ToString(), " (", by_cgroup ? cgroup_file : "physical memory",
                   "); lower --", limit_flag, by_cgroup ? " or raise the cgroup's limit" : ""));
}

absl::StatusOr<MachineMemory> ReadMachineMemory(absl::string_view root) {
  const std::string base(absl::StripSuffix(root, "/"));
  MachineMemory memory;
  const std::string meminfo = absl::StrCat(base, "/proc/meminfo");
  const std::optional<uint64_t> physical_kib = FindNumber(ReadFile(meminfo), "MemTotal:");
  if (!physical_kib.has_value() || *physical_kib >= kLimitBytesMax >> 10) {
    return absl::FailedPreconditionError(absl::StrCat(meminfo, " does not tell MemTotal"));
  }
  memory.physical = ByteSize::KiB(*physical_kib);
  const std::string groups = ReadFile(absl::StrCat(base, "/proc/self/cgroup"));
  for (absl::string_view line : absl::StrSplit(groups, '\n')) ReadCgroupLine(line, base, memory);
  return memory;
}

}  // namespace cairn
