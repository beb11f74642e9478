// disk_tier_child DIR SEED KILL_AT FIRST: uses a disk tier under a seed until its KILL_AT-th disk
// call, in the middle of which it dies as by kill -9. Records are numbered from FIRST on. Says on
// stdout what it is about to do, and what has been answered, a line each:
//   begin FILE FIRST COUNT, finished FILE, dropping FILE, dropped FILE, marking FILE SLOT,
//   marked FILE SLOT, fencing SEQUENCE, fenced SEQUENCE
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache_node/tiers/disk/rocksdb_disk_tier.h"
#include "common/base/check.h"
#include "tests/cache_node/tiers/disk/numbered_record.h"
#include "tests/testing/fault_file_system.h"

namespace cairn::testing {
namespace {

using node::DiskPlace;
using node::DiskTier;

constexpr size_t kPayloadBytes = 3000;
constexpr size_t kFilesMax = 6;

void Say(const std::string& line) {
  const std::string text = line + "\n";
  CAIRN_CHECK(write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

class Child {
 public:
  Child(DiskTier* tier, uint64_t seed, uint64_t first)
      : tier_(tier), random_(seed), number_(first) {}

  void Recover() {
    CAIRN_CHECK_OK(tier_->Recover([this](DiskTier::RecoveredFile file) {
      files_.push_back(file.file);
      return true;
    }));
  }

  [[noreturn]] void RunUntilKilled() {
    for (;;) {
      const uint64_t choice = random_() % 10;
      if (choice < 5 || files_.empty()) {
        WriteFile(/*finish=*/choice < 4);
      } else if (choice < 7) {
        Mark();
      } else if (choice < 8) {
        Fence();
      } else {
        Drop();
      }
      while (files_.size() > kFilesMax) Drop();
    }
  }

 private:
  void WriteFile(bool finish) {
    auto builder = tier_->StartFile();
    CAIRN_CHECK_OK(builder.status());
    const uint64_t count = 1 + random_() % 20;
    const uint64_t file = (*builder)->file();
    Say(absl::StrCat("begin ", file, " ", number_, " ", count));
    for (uint64_t i = 0; i < count; ++i) {
      const NumberedRecord record(number_++, kPayloadBytes);
      CAIRN_CHECK_OK((*builder)->Add(record.record()).status());
    }
    if (!finish) return;
    CAIRN_CHECK_OK((*builder)->Finish());
    Say(absl::StrCat("finished ", file));
    files_.push_back(file);
  }

  void Mark() {
    const DiskPlace place{files_[random_() % files_.size()], 0};
    Say(absl::StrCat("marking ", place.file, " ", place.slot));
    CAIRN_CHECK_OK(tier_->MarkDead({{place}}));
    Say(absl::StrCat("marked ", place.file, " ", place.slot));
  }

  void Fence() {
    DiskTier::Fence fence;
    fence.sequence = number_;
    Say(absl::StrCat("fencing ", number_));
    CAIRN_CHECK_OK(tier_->PutFence(fence));
    Say(absl::StrCat("fenced ", number_));
  }

  void Drop() {
    const size_t index = random_() % files_.size();
    Say(absl::StrCat("dropping ", files_[index]));
    CAIRN_CHECK_OK(tier_->DropFile(files_[index]));
    Say(absl::StrCat("dropped ", files_[index]));
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  DiskTier* const tier_;
  std::mt19937_64 random_;
  uint64_t number_;
  std::vector<uint64_t> files_;
};

void Run(const std::string& directory, uint64_t seed, uint64_t kill_at, uint64_t first) {
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
  CAIRN_CHECK((*tier)->GetStats().health == DiskTier::Health::kServing);
  Child child(tier->get(), seed, first);
  child.Recover();
  child.RunUntilKilled();
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
