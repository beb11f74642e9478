// Seed inputs of the frame decoder's fuzz target.
#pragma once

#include <string>

#include "tests/common/wire/frame_samples.h"

namespace cairn::testing {

// A whole input: prefix, then a message of the generated classes, at most a few kilobytes.
std::string RandomFuzzInput(Random& random);

}  // namespace cairn::testing
