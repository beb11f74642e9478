// Moving bytes over a connected socket, blocking, as fast as a plain socket goes.
//
// Thread-safe: no state. False: the other end is gone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::bench {

// Large buffers, no delay.
void TuneWireFloorSocket(int socket);
// CUBIC for a TCP socket, where the kernel has it.
void UseCubic(int socket);

bool SendAll(int socket, const void* bytes, size_t size);
bool ReceiveAll(int socket, void* bytes, size_t size);

// Receives `size` bytes to `bytes` and hashes each `segment_bytes` of them as soon as they are
// there. The last digest goes to `digest`.
bool ReceiveAndHash(int socket, uint8_t* bytes, size_t size, size_t segment_bytes,
                    uint64_t* digest);
// Hashes the segments of each send, then sends them, from where they lie. REQUIRES: segment_bytes
// divides the size, and a send.
bool HashAndSend(int socket, const uint8_t* bytes, size_t size, size_t segment_bytes);

}  // namespace cairn::bench
