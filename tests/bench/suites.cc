#include "tests/bench/suites.h"

namespace cairn::bench {
namespace {

constexpr Suite kSuites[] = {
    {"copy_digest", "copying blocks with their digest against memcpy and hashing",
     RunCopyDigestSuite},
    {"datapath", "gets, puts and lookups of a node over its transports against plain sockets",
     RunDatapathSuite},
    {"decode", "paged attention on the CPU against reading its KV", RunDecodeSuite},
    {"eviction", "what eviction policies hit on traces, beside LRU and the best caches",
     RunEvictionSuite},
    {"flood", "a thousand clients put 8 MiB each at once into a small node", RunFloodSuite},
    {"hash", "block keys (key scheme 1) against bare SHA-256", RunHashSuite},
    {"hit", "a cached prompt from the lookup to its last verified byte, over each transport",
     RunHitSuite},
    {"index", "the router's index while a trace is served: rates, times, memory", RunIndexSuite},
    {"pressure", "lookups and gets beside writes, evictions and spills at full rate",
     RunPressureSuite},
    {"quantization", "what dtypes cost: attention over rounded KV", RunQuantizationSuite},
    {"route", "a Route call of a long prompt against hashing its keys, and calls over gRPC",
     RunRouteSuite},
    {"routing", "what routing policies hit and how long requests wait, on traces", RunRoutingSuite},
    {"served-decode", "attention that a node serves against its kernel on the same pages",
     RunServedDecodeSuite},
    {"spill", "the disk tier against fio, recovery after a kill, bytes written in all",
     RunSpillSuite},
};

}  // namespace

absl::Span<const Suite> AllSuites() { return kSuites; }

}  // namespace cairn::bench
