#include "cache_node/service/decode_config.h"

#include <algorithm>
#include <thread>

#include "cache_node/decode/engine/attend_plan.h"
#include "cache_node/decode/engine/leased_runs.h"
#include "cache_node/service/decode_slot.h"
#include "common/wire/decode_limits.h"

namespace cairn::node {
namespace {

constexpr int kThreadsMax = 256;
// What a thread computes with: packed queries, tiles, its stack.
constexpr uint64_t kThreadBytes = uint64_t{1} << 20;
// About as long as it takes to wake a thread.
constexpr absl::Duration kSpin = absl::Microseconds(20);
constexpr uint64_t kBookShare = 8;
constexpr uint64_t kBookBytesMin = uint64_t{1} << 20;
constexpr uint64_t kBookBytesMax = uint64_t{64} << 20;

}  // namespace

void DecodeConfig::Check(ConfigErrors& errors) const {
  errors.CheckRange("decode-memory", memory, ByteSize(), ByteSize::GiB(16 << 10));
  errors.CheckRange("decode-threads", int64_t{threads}, int64_t{0}, int64_t{kThreadsMax});
  errors.CheckRange("decode-streams-max", int64_t{streams_max}, int64_t{0}, int64_t{10'000});
  errors.CheckRange("decode-in-flight-bytes", in_flight, ByteSize::MiB(4), ByteSize::GiB(64));
  errors.CheckRange("decode-idle-ms", idle, absl::Milliseconds(100),
                    absl::Milliseconds(kSequenceIdleMsMax));
  errors.CheckRange("decode-stall-ms", stall, absl::Milliseconds(10), absl::Hours(1));
}

uint32_t DecodeConfig::ThreadCount() const {
  if (!on()) return 1;
  if (threads > 0) return static_cast<uint32_t>(threads);
  return std::clamp<uint32_t>(std::thread::hardware_concurrency(), 1, kThreadsMax);
}

absl::Duration DecodeConfig::Spin() const {
  return std::thread::hardware_concurrency() > ThreadCount() ? kSpin : absl::ZeroDuration();
}

SequenceTable::Options DecodeConfig::TableOptions(ByteSize host_memory) const {
  SequenceTable::Options options;
  options.pages.bytes_max = memory.bytes();
  options.pins.bytes_max = host_memory.bytes() / 2;  // As leases.
  options.book_bytes_max = BookMemory().bytes();
  options.idle_default = idle;
  return options;
}

ByteSize DecodeConfig::BookMemory() const {
  if (memory.bytes() == 0) return ByteSize();
  return ByteSize(std::clamp(memory.bytes() / kBookShare, kBookBytesMin, kBookBytesMax));
}

ByteSize DecodeConfig::EngineMemory() const {
  return ByteSize(AttendPlan::kPlanBytesMax + LeasedRuns::kBytesMax + ThreadCount() * kThreadBytes);
}

ByteSize DecodeConfig::StreamMemory() const {
  return ByteSize(static_cast<uint64_t>(StreamsMax()) * kDecodeStepsMax * DecodeSlot::kKeptBytes);
}

}  // namespace cairn::node
