// Method: one wrong value at a time, and what the message says of it.
#include "cache_node/service/node_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cache_node/service/disk_space.h"
#include "cache_node/service/memory_terms.h"
#include "cache_node/store/feed_hub.h"
#include "cache_node/store/removed_ring.h"

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

NodeConfig GoodConfig() {
  NodeConfig config;
  config.node_id = "node-1";
  config.security.insecure = true;
  return config;
}

std::string Complaint(const NodeConfig& config) {
  const absl::Status status = config.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// A tree of files that tells `physical_kb` of memory and a cgroup with `limit`.
std::string MachineRoot(const std::string& name, int64_t physical_kb, const std::string& limit) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::create_directories(root / "proc/self");
  std::filesystem::create_directories(root / "sys/fs/cgroup");
  std::ofstream(root / "proc/meminfo") << "MemTotal: " << physical_kb << " kB\n";
  std::ofstream(root / "proc/self/cgroup") << "0::/\n";
  std::ofstream(root / "proc/self/mountinfo")
      << "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  std::ofstream(root / "sys/fs/cgroup/memory.max") << limit << "\n";
  return root.string();
}

TEST(NodeConfig, DefaultsWithANameAreFine) { EXPECT_TRUE(GoodConfig().Validate().ok()); }

TEST(NodeConfig, NodeIdIsRequired) {
  NodeConfig config = GoodConfig();
  config.node_id.clear();
  EXPECT_THAT(Complaint(config), HasSubstr("--node-id"));
}

TEST(NodeConfig, LabelsAreKeyAndValueAndAFew) {
  NodeConfig config = GoodConfig();
  config.labels = {"zone=a", "gpu=h200"};
  EXPECT_TRUE(config.Validate().ok()) << config.Validate();
  config.labels = {"zone"};
  EXPECT_THAT(Complaint(config), HasSubstr("--labels: label \"zone\": must be key=value"));
  config.labels = {"zone=a", "zone=b"};
  EXPECT_THAT(Complaint(config), HasSubstr("given twice"));
  config.labels.assign(17, "k=v");
  EXPECT_THAT(Complaint(config), HasSubstr("at most 16"));
  config.labels.clear();
  config.worker_kv_tokens = -1;
  EXPECT_THAT(Complaint(config), HasSubstr("--worker-kv-tokens"));
}

TEST(NodeConfig, PlainTextMustBeSaid) {
  NodeConfig config = GoodConfig();
  config.security.insecure = false;
  EXPECT_THAT(Complaint(config), HasSubstr("--insecure"));
}

TEST(NodeConfig, PlainTextStaysOnLoopback) {
  NodeConfig config = GoodConfig();
  config.listen = {"0.0.0.0:7070"};
  EXPECT_THAT(Complaint(config), HasSubstr("--listen=0.0.0.0:7070"));
}

TEST(NodeConfig, ValuesOutOfRangeNameTheirFlags) {
  NodeConfig config = GoodConfig();
  config.in_flight_bytes = ByteSize(1);
  config.namespace_memory = ByteSize(2);
  config.feed_shards = 257;
  config.lease_ttl = absl::Hours(1);
  config.gets_max = 0;
  config.get_stall = absl::ZeroDuration();
  config.heartbeat = absl::ZeroDuration();
  const std::string complaint = Complaint(config);
  for (const char* flag :
       {"--in-flight-bytes=1B", "--namespace-memory=2B", "--feed-shards=257", "--lease-ttl-ms=1h",
        "--gets-max=0", "--get-stall-ms=0", "--heartbeat-ms=0"}) {
    EXPECT_THAT(complaint, HasSubstr(flag));
  }
}

TEST(NodeConfig, AnEvictionPolicyIsOneOfThoseThatThereAre) {
  NodeConfig config = GoodConfig();
  config.eviction_policy = "s3_fifo";
  EXPECT_TRUE(config.Validate().ok());
  config.eviction_policy = "";
  EXPECT_EQ(config.EvictionPolicyName(), "reuse");
  config.disk.dir = "/disk";
  EXPECT_EQ(config.EvictionPolicyName(), "lru");
  config.disk.dir = "";
  config.device.device = "emulated";
  EXPECT_EQ(config.EvictionPolicyName(), "lru");
  config.device.device = "none";
  config.eviction_policy = "mru";
  EXPECT_THAT(Complaint(config), HasSubstr("--eviction-policy=mru"));
  EXPECT_THAT(Complaint(config), HasSubstr("s3_fifo"));
}

TEST(NodeConfig, AdvertisedAddressHasAPort) {
  NodeConfig config = GoodConfig();
  config.advertise = {"host"};
  EXPECT_THAT(Complaint(config), HasSubstr("--advertise=host"));
}

TEST(NodeConfig, MemoryIsTheSumOfItsTerms) {
  const NodeConfig config = GoodConfig();
  uint64_t sum = 0;
  for (const v1::MemoryTerm& term : config.MemoryFacts(ByteSize()).terms) sum += term.bytes();
  EXPECT_EQ(sum, config.Memory().total().bytes());
  EXPECT_GT(sum, config.host_memory.bytes());
}

uint64_t TermOf(const NodeConfig& config, const std::string& name) {
  for (const MemoryTerm& term : MemoryTermsOf(config)) {
    if (term.name == name) return term.size.bytes();
  }
  ADD_FAILURE() << "no term '" << name << "'";
  return 0;
}

TEST(NodeConfig, TermsOfTheStoreAreAsLargeAsItsPartsSay) {
  NodeConfig config = GoodConfig();
  config.feed_queue_records = 1000;
  config.removed_remembered = 5000;
  config.namespace_memory = ByteSize::MiB(3);
  config.leased_memory = ByteSize::MiB(1);
  EXPECT_EQ(TermOf(config, "feed queues"), 1000 * FeedHub::kWatchersMax * FeedHub::kBytesPerRecord);
  EXPECT_EQ(TermOf(config, "namespaces"), ByteSize::MiB(3).bytes());
  EXPECT_EQ(TermOf(config, "removed keys"), 5000 * RemovedRing::kBytesPerEntry);
  EXPECT_EQ(TermOf(config, "links of leases"), 64 * kLeaseLinkBytes.bytes());
}

NodeConfig ConfigWithDisk() {
  NodeConfig config = GoodConfig();
  config.disk.dir = "kv";
  config.disk.bytes = ByteSize::GiB(10);
  return config;
}

TEST(NodeConfig, DiskTierNeedsItsBytesSaid) {
  NodeConfig config = ConfigWithDisk();
  EXPECT_TRUE(config.Validate().ok());
  config.disk.bytes = ByteSize();
  EXPECT_THAT(Complaint(config), HasSubstr("--disk-bytes=0B: must be from 128MiB to"));
  config.disk.bytes = ByteSize::MiB(127);
  EXPECT_THAT(Complaint(config), HasSubstr("--disk-bytes=127MiB"));
}

TEST(NodeConfig, DiskBytesWithoutADirectoryAreAMistake) {
  NodeConfig config = GoodConfig();
  config.disk.bytes = ByteSize::GiB(1);
  EXPECT_THAT(Complaint(config), HasSubstr("--disk-bytes=1GiB: must be left out without"));
}

TEST(NodeConfig, ValuesOfTheDiskTierOutOfRangeNameTheirFlags) {
  NodeConfig config = ConfigWithDisk();
  config.disk.spill_admission = "sometimes";
  config.disk.index_memory = ByteSize(1);
  config.disk.read_threads = 0;
  config.disk.spill_block_bytes = ByteSize::GiB(1);
  config.disk.spill_file_bytes = ByteSize::GiB(2);
  config.disk.spill_pinned_bytes = ByteSize::GiB(1);
  config.disk.spill_queue_bytes = ByteSize(3);
  config.disk.spill_file_age = absl::ZeroDuration();
  const std::string complaint = Complaint(config);
  for (const char* part :
       {"--spill-admission=sometimes: must be always or second-touch", "--disk-index-memory=1B",
        "--disk-read-threads=0", "--spill-block-bytes=1GiB", "--spill-file-bytes=2GiB",
        "--spill-pinned-bytes=1GiB", "--spill-queue-bytes=3B", "--spill-file-age-ms=0"}) {
    EXPECT_THAT(complaint, HasSubstr(part));
  }
}

TEST(NodeConfig, DeviceIsNoneEmulatedOrOneOfCuda) {
  NodeConfig config = GoodConfig();
  config.device.bytes = ByteSize::MiB(8);
  for (const char* device : {"emulated", "cuda:0", "cuda:15"}) {
    config.device.device = device;
    EXPECT_TRUE(config.Validate().ok()) << device;
  }
  EXPECT_EQ(config.device.CudaOrdinal(), 15);
  for (const char* device : {"", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1024", "gpu"}) {
    config.device.device = device;
    EXPECT_THAT(Complaint(config), HasSubstr("must be none, emulated, or cuda:N")) << device;
  }
}

TEST(NodeConfig, DeviceNeedsItsBytesSaidAndNoDeviceHasNone) {
  NodeConfig config = GoodConfig();
  config.device.device = "emulated";
  EXPECT_THAT(Complaint(config), HasSubstr("--device-bytes=0B: must be from 1MiB to"));
  config.device.device = "none";
  config.device.bytes = ByteSize::MiB(8);
  EXPECT_THAT(Complaint(config), HasSubstr("--device-bytes=8MiB: must be left out without"));
  config.device.bytes = ByteSize();
  config.device.index_memory = ByteSize(1);
  EXPECT_THAT(Complaint(config), HasSubstr("--device-index-memory=1B"));
}

TEST(NodeConfig, MemoryOfAnEmulatedDeviceIsTheProcessesOwn) {
  NodeConfig config = GoodConfig();
  const uint64_t without = config.Memory().total().bytes();
  config.device.bytes = ByteSize::MiB(8);
  config.device.index_memory = ByteSize::MiB(2);
  config.device.device = "cuda:0";
  EXPECT_EQ(config.Memory().total().bytes(), without + ByteSize::MiB(2).bytes());
  config.device.device = "emulated";
  EXPECT_EQ(config.Memory().total().bytes(), without + ByteSize::MiB(10).bytes());
}

TEST(NodeConfig, FilesOfBlocksAreASmallPartOfASmallDisk) {
  NodeConfig config = ConfigWithDisk();
  EXPECT_EQ(config.disk.SpillFileBytes(), ByteSize::MiB(256));
  config.disk.bytes = ByteSize::MiB(64 + 160);
  EXPECT_EQ(config.disk.SpillFileBytes(), ByteSize::MiB(10));
  config.disk.spill_file_bytes = ByteSize::MiB(20);
  EXPECT_EQ(config.disk.SpillFileBytes(), ByteSize::MiB(20));
  EXPECT_TRUE(config.Validate().ok());
}

TEST(NodeConfig, DiskTierIsPartOfTheSum) {
  const NodeConfig without = GoodConfig();
  NodeConfig config = ConfigWithDisk();
  EXPECT_EQ(TermOf(config, "disk index"), config.disk.index_memory.bytes());
  const uint64_t tier = TermOf(config, "disk tier");
  EXPECT_EQ(config.Memory().total().bytes(),
            without.Memory().total().bytes() + config.disk.index_memory.bytes() + tier);
  // One more block may be read.
  ++config.disk.read_threads;
  EXPECT_GE(TermOf(config, "disk tier"), tier + config.disk.spill_block_bytes.bytes());
}

TEST(NodeConfig, LeasesMayHoldHalfOfThePoolWhenNothingIsSaid) {
  NodeConfig config = GoodConfig();
  config.host_memory = ByteSize::MiB(2);
  EXPECT_EQ(TermOf(config, "links of leases"), 64 * kLeaseLinkBytes.bytes());
}

TEST(NodeConfig, DefaultsFitIntoAGibibyteBesideAPoolOfAQuarter) {
  NodeConfig config = GoodConfig();
  config.host_memory = ByteSize::MiB(256);
  EXPECT_LE(config.Memory().total(), ByteSize::GiB(1));
}

TEST(NodeConfig, SumAboveTheLimitIsRefusedWithTheTable) {
  NodeConfig config = GoodConfig();
  config.memory_limit = ByteSize::MiB(512);
  const absl::Status status = MemoryLimitOf(config, MachineRoot("big", 64 << 20, "max")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--host-memory"));
}

TEST(NodeConfig, LimitDefaultsToTheCgroups) {
  NodeConfig config = GoodConfig();
  const std::string root = MachineRoot("cgroup", 64 << 20, std::to_string(uint64_t{4} << 30));
  const absl::StatusOr<ByteSize> limit = MemoryLimitOf(config, root);
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ(*limit, ByteSize::GiB(4));
}

TEST(NodeConfig, LimitDefaultsToAPartOfTheMachine) {
  NodeConfig config = GoodConfig();
  const absl::StatusOr<ByteSize> limit =
      MemoryLimitOf(config, MachineRoot("bare", 10 << 20, "max"));
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_EQ(*limit, ByteSize(ByteSize::GiB(10).bytes() / 100 * 80));
}

TEST(NodeConfig, LimitAboveTheCgroupsIsRefused) {
  NodeConfig config = GoodConfig();
  config.memory_limit = ByteSize::GiB(8);
  const std::string root = MachineRoot("small", 64 << 20, std::to_string(uint64_t{4} << 30));
  const absl::Status status = MemoryLimitOf(config, root).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--memory-limit"));
}

TEST(DiskSpace, AtStartItIsSaidWhatIsThereAndWhatIsMissing) {
  DiskConfig config;
  config.dir = "/kv";
  config.bytes = ByteSize::GiB(10);
  DiskTier::Stats stats;
  stats.bytes_used = uint64_t{4} << 30;
  stats.files = 3;
  const auto line = [&](uint64_t total_gib, uint64_t free_gib) {
    return DiskStartLine(config, stats, DiskSpace{total_gib << 30, free_gib << 30});
  };
  EXPECT_EQ(*line(20, 6),
            "disk tier in /kv: may take 10GiB, holds 4294967296 bytes in 3 files; 6442450944 bytes "
            "are free there");
  EXPECT_THAT(*line(20, 5), HasSubstr("LESS than it may come to take"));
  EXPECT_THAT(std::string(line(9, 9).status().message()),
              HasSubstr("--disk-bytes=10GiB: the file system of /kv has"));
  EXPECT_TRUE(DiskStartLine(config, stats, std::nullopt).ok());
  EXPECT_TRUE(DiskSpaceOf(::testing::TempDir()).has_value());
  EXPECT_FALSE(DiskSpaceOf("/nowhere/at/all").has_value());
}

}  // namespace
}  // namespace cairn::node
