// DecodeConfig: what a cache node is told of served attention. The defaults are those of the flags.
//
// A plain value, part of NodeConfig.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "cache_node/decode/sequence/sequence_table.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"

namespace cairn::node {

struct DecodeConfig {
  ByteSize memory;      // Of running sequences; 0: there are none.
  int threads = 0;      // 0: one for each processor.
  int streams_max = 0;  // 0: kStreamsDefault with `memory`; without it attention is not served.
  ByteSize in_flight = ByteSize::MiB(32);
  absl::Duration idle = absl::Minutes(1);
  absl::Duration stall = absl::Seconds(5);

  static constexpr int kStreamsDefault = 64;

  void Check(ConfigErrors& errors) const;

  // Attention is served: of sequences too where there is memory for them, else of leased blocks.
  bool on() const { return memory.bytes() > 0 || streams_max > 0; }
  int StreamsMax() const { return on() && streams_max == 0 ? kStreamsDefault : streams_max; }

  uint32_t ThreadCount() const;
  // How long threads look for work before they sleep: not where others need their processors.
  absl::Duration Spin() const;
  // For sequences over a pool of blocks of that size.
  SequenceTable::Options TableOptions(ByteSize host_memory) const;
  // Beside `memory` and `in_flight`: books of sequences, what kernels compute with, streams.
  ByteSize BookMemory() const;
  ByteSize EngineMemory() const;
  ByteSize StreamMemory() const;
};

}  // namespace cairn::node
