// One fuzz input for what the disk tier parses: records, directories, the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// The entry that libFuzzer calls, and the replay test where there is no libFuzzer. Aborts on a
// broken promise of a parser. Byte 0 is the kind (DiskFormat), byte 1 says with its lowest bit that
// the checksum is put right first, without which hardly any mutation would get past it; the rest is
// the value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cairn::testing {

enum class DiskFormat : uint8_t { kRecord, kChunk, kFooter, kNamespace, kFence, kDead };
inline constexpr uint8_t kDiskFormats = 6;
inline constexpr size_t kDiskFuzzPrefixBytes = 2;

// What parsing this input answers: OK or the error.
bool ParsesAs(DiskFormat format, absl::string_view value);
// The input for a value.
std::string DiskFuzzInput(DiskFormat format, bool mend_checksum, absl::string_view value);
// A sound value of this kind, told by a number.
std::string SoundValue(DiskFormat format, uint64_t number);

}  // namespace cairn::testing
