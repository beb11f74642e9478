// disk_tier_child DIR SEED KILL_AT FIRST: uses a disk tier under a seed until its KILL_AT-th disk
// call, in the middle of which it dies as by kill -9. Records are numbered from FIRST on. What its
// driver (disk_tier_driver.h) says goes to stdout.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/check.h"
#include "tests/cache_node/tiers/disk/disk_tier_driver.h"
#include "tests/testing/fault_file_system.h"

namespace cairn::testing {
namespace {

void Say(const std::string& line) {
  const std::string text = line + "\n";
  CAIRN_CHECK(write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

[[noreturn]] void Run(const std::string& directory, uint64_t seed, uint64_t kill_at,
                      uint64_t first) {
  auto system = std::make_shared<FaultFileSystem>(rocksdb::FileSystem::Default());
  std::atomic<uint64_t> calls{0};
  system->SetHook([&](DiskIo, const std::string&) {
    if (++calls == kill_at) kill(getpid(), SIGKILL);
  });
  node::RocksDbDiskTierOptions options;
  options.directory = directory;
  options.bytes_max = uint64_t{1} << 30;
  options.file_system = system;
  auto tier = node::RocksDbDiskTier::Open(options);
  CAIRN_CHECK_OK(tier.status());
  CAIRN_CHECK((*tier)->GetStats().health == node::DiskTier::Health::kServing);
  DiskTierDriver driver(tier->get(), seed, first, Say);
  CAIRN_CHECK_OK(driver.Recover());
  while (true) CAIRN_CHECK_OK(driver.Step());
}

}  // namespace
}  // namespace cairn::testing

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: disk_tier_child DIR SEED KILL_AT FIRST\n");
    return 2;
  }
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  cairn::testing::Run(argv[1], number(2), number(3), number(4));
}
