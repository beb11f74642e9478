// TakeShortTurns, LowerThisThread: who gets the processor first, those that answer calls or those
// that work in the background.
#pragma once

namespace cairn {

// For a server's main thread, before it starts others: the calling thread and those that it starts
// ask the scheduler for turns of 0.1 ms, and so run within about that time of being woken even
// where others have the processors (Linux 6.12 and later: sched_setattr(2), sched_runtime; earlier
// ones let the request be). Without it, a woken thread can wait for a whole turn of another, 1.4 to
// 3 ms, at each hop of a call.
//
// What the system does not allow stays as it is: a priority changes no result.
void TakeShortTurns();

// For background work of any length: nice +10, batch scheduling, turns of 3 ms, and the lowest
// best-effort class of I/O. Threads that it starts inherit all four.
void LowerThisThread();

}  // namespace cairn
