// One fuzz input for what a client of the node's own host may say: packets, each two bytes of
// length and then a LocalRequest, of one connection to a small store.
//
// What nobody could guess stands in short: an empty fingerprint is the registered one, a lease of
// one byte the last that was answered, a token of one byte the one of a reservation, and a key of
// one byte the block of that number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cairn/v1/local.pb.h"

// The entry that libFuzzer calls, and the replay test where there is no libFuzzer. Aborts on a
// broken promise.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace cairn::testing {

// An input of these packets.
std::string LocalFuzzInput(const std::vector<v1::LocalRequest>& requests);
// How many requests came to more than a failure.
size_t RunLocalSession(const std::string& input);

}  // namespace cairn::testing
