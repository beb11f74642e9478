// LowerThisThread: makes the calling thread give way to those that answer calls.
#pragma once

namespace cairn {

// For background work of any length: nice +10, batch scheduling, and the lowest best-effort class
// of I/O. Threads that it starts inherit all three. What the system does not allow stays as it is:
// a priority changes no result.
void LowerThisThread();

}  // namespace cairn
