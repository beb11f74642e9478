// FeedFollower: keeps one feed open to one holder's address and hands what it says to the core.
//
// A thread of its own connects, reads, asks for shards again where the core wants them, and
// connects anew when the feed ends or falls silent, after a backoff. What stands at the address may
// change between two feeds. The core's lock is never held while it waits for the network.
// Thread-safe. Borrows its parts, which must outlive it.
#pragma once

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/random_source.h"
#include "common/rpc/channel_options.h"
#include "common/security/call_metadata.h"
#include "common/server/line_log.h"
#include "common/server/wake_event.h"
#include "router/core/router_core.h"
#include "router/ids.h"

namespace cairn::router {

class FeedFollower {
 public:
  // How soon Stop is noticed.
  static constexpr absl::Duration kPoll = absl::Milliseconds(250);

  struct Options {
    // Wait after a feed ended; doubles up to the bound until a feed lasted longer than the bound.
    absl::Duration backoff_initial = absl::Milliseconds(50);
    absl::Duration backoff_max = absl::Milliseconds(500);
    // A feed without a message of any kind for so long is given up: its peer may be gone without a
    // word. Counted in polls, so that a process that was stopped cuts nothing.
    absl::Duration silence_max = absl::Seconds(10);
    ChannelOptions channel;
    // Null: plain text. (gRPC shares credentials.)
    std::shared_ptr<grpc::ChannelCredentials> credentials;
    // What each feed sends along to say who follows; borrowed; null: nothing.
    const CallMetadata* metadata = nullptr;
  };

  struct Parts {
    RouterCore* core = nullptr;
    const Clock* clock = nullptr;
    RandomSource* random = nullptr;
    // Gets a line for people when a feed begins, or ends for another reason than the last one; or
    // null. Called on the follower's thread, with no lock held.
    LineLog log;
  };

  // What became of it so far.
  struct Status {
    // Of the node that last said who it is and was taken; empty before.
    std::string node_id;
    // Why the last feed ended; OK while one runs.
    absl::Status ended;
    // Feeds that ended, or could not be had.
    uint64_t feeds_ended = 0;
    uint64_t messages = 0;
    uint64_t shards_asked_again = 0;
    // Heartbeats that showed only a part: the node takes this router for a worker, and can never be
    // counted as exact.
    uint64_t partial_heartbeats = 0;
  };

  // Starts at once. `address` is the holder's in the core.
  FeedFollower(HolderIndex holder, std::string address, const Options& options, Parts parts);
  // Stop, and waits for the thread.
  ~FeedFollower();

  FeedFollower(const FeedFollower&) = delete;
  FeedFollower& operator=(const FeedFollower&) = delete;

  // Ends the feed, for good; does not wait.
  void Stop() { stop_.Set(); }

  const std::string& address() const { return address_; }
  Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  // One feed, from the connection to its end, and why that was.
  absl::Status Follow();
  void NoteTaken(const v1::WatchBlocksResponse& message, size_t resyncs);
  void NoteEnded(const absl::Status& why);
  void Log(absl::string_view line) const;
  absl::Duration Jittered(absl::Duration wait) const;

  const HolderIndex holder_;
  const std::string address_;
  const Options options_;
  const Parts parts_;
  WakeEvent stop_;
  mutable absl::Mutex mutex_;
  Status status_ ABSL_GUARDED_BY(mutex_);
  std::string logged_ ABSL_GUARDED_BY(mutex_);         // The last reason that was logged.
  bool said_partial_ ABSL_GUARDED_BY(mutex_) = false;  // Of this feed.
  std::thread thread_;
};

}  // namespace cairn::router
