// One fuzz input for files of decisions: byte 0 chooses what the rest is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// The entry that libFuzzer calls, and the replay test where there is no libFuzzer. Aborts on a
// broken promise of the reader, or of a policy over what was read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cairn::testing {

enum class DecisionInput : uint8_t {
  kFile,        // A file as it is.
  kMendedFile,  // A file whose frames get the checksums of their bytes first.
  kRecord,      // One record, which is put behind sound ones.
};
inline constexpr uint8_t kDecisionInputs = 3;

std::string DecisionFuzzInput(DecisionInput kind, absl::string_view bytes);
// Decisions that were read from the file; the promises are held against it.
size_t DecisionsIn(absl::string_view file);
// A sound file of a run, names, and so many decisions and outcomes, told by a number.
std::string SoundDecisionFile(uint32_t number, uint32_t decisions);
// Its last record, as a payload.
std::string SoundDecisionRecord(uint32_t number);

}  // namespace cairn::testing
