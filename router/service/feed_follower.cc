#include "router/service/feed_follower.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "client/cpp/block_watcher.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "common/identity/frame.h"
#include "common/rpc/retry_status.h"
#include "common/server/thread_name.h"

namespace cairn::router {
namespace {

// A node's wish to be left alone is heard as far as this.
constexpr absl::Duration kRetryAfterMax = absl::Seconds(10);
constexpr size_t kReadableBytesMax = 1024;

// What a node said may be any bytes; it goes into messages, which take UTF-8 only, and to people's
// terminals.
std::string Readable(absl::string_view text) {
  std::string readable(text.substr(0, kReadableBytesMax));
  const bool utf8 = IsUtf8(readable);
  for (char& c : readable) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_iscntrl(byte) || (!utf8 && !absl::ascii_isascii(byte))) c = '?';
  }
  return readable;
}

}  // namespace

FeedFollower::FeedFollower(HolderIndex holder, std::string address, const Options& options,
                           Parts parts)
    : holder_(holder), address_(std::move(address)), options_(options), parts_(std::move(parts)) {
  CAIRN_CHECK(parts_.core != nullptr && parts_.clock != nullptr && parts_.random != nullptr);
  CAIRN_CHECK(options_.backoff_initial > absl::ZeroDuration());
  CAIRN_CHECK(options_.backoff_max >= options_.backoff_initial);
  status_.ended = absl::UnavailableError("not connected yet");
  thread_ = std::thread([this] { Run(); });
}

FeedFollower::~FeedFollower() {
  Stop();
  thread_.join();
}

FeedFollower::Status FeedFollower::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void FeedFollower::Run() {
  NameThisThread(absl::StrCat("feed ", holder_));
  absl::Duration backoff = options_.backoff_initial;
  absl::Duration wait = absl::ZeroDuration();
  while (!stop_.WaitFor(wait)) {
    const absl::Time began = parts_.clock->SteadyNow();
    const absl::Status why = Follow();
    parts_.core->OnFeedBroken(holder_);
    if (stop_.WaitFor(absl::ZeroDuration())) return;
    NoteEnded(why);
    if (parts_.clock->SteadyNow() - began > options_.backoff_max) {
      backoff = options_.backoff_initial;
    }
    wait = std::max(Jittered(backoff),
                    std::min(RetryAfter(why).value_or(absl::ZeroDuration()), kRetryAfterMax));
    backoff = std::min(backoff * 2, options_.backoff_max);
  }
}

absl::Status FeedFollower::Follow() {
  // A channel of its own each time: an old one would sit out a backoff of its own first.
  const std::unique_ptr<v1::CacheNode::Stub> stub =
      v1::CacheNode::NewStub(grpc::CreateCustomChannel(
          address_,
          options_.credentials ? options_.credentials : grpc::InsecureChannelCredentials(),
          MakeChannelArguments(options_.channel)));
  BlockWatcher watcher(stub.get(), options_.metadata);
  absl::Duration silence;
  while (!stop_.WaitFor(absl::ZeroDuration())) {
    const absl::StatusOr<std::optional<v1::WatchBlocksResponse>> message = watcher.Next(kPoll);
    if (!message.ok()) return message.status();
    if (!message->has_value()) {
      silence += kPoll;
      if (silence < options_.silence_max) continue;
      return absl::UnavailableError(
          absl::StrCat("nothing was heard for ", absl::FormatDuration(silence)));
    }
    silence = absl::ZeroDuration();
    const absl::StatusOr<std::vector<uint32_t>> resyncs = parts_.core->OnFeed(holder_, **message);
    if (!resyncs.ok()) return resyncs.status();
    NoteTaken(**message, resyncs->size());
    if (!resyncs->empty()) watcher.Resync(*resyncs);
  }
  return absl::CancelledError("the router stops");
}

void FeedFollower::NoteTaken(const v1::WatchBlocksResponse& message, size_t resyncs) {
  const bool partial = message.has_heartbeat() && message.heartbeat().partial();
  bool say_partial = false;
  {
    absl::MutexLock lock(&mutex_);
    ++status_.messages;
    status_.shards_asked_again += resyncs;
    if (partial) ++status_.partial_heartbeats;
    say_partial = partial && !std::exchange(said_partial_, true);
    if (message.has_hello()) said_partial_ = false;
    if (!message.has_hello() && !say_partial) return;
  }
  if (say_partial) {
    return Log(
        "shows only a part of its blocks, so it stays RECOVERING: it does not know this router as "
        "one. Give the identity of --node-tls-cert, or of --node-token-file, the role router in "
        "the node's access file");
  }
  {
    absl::MutexLock lock(&mutex_);
    status_.node_id = message.hello().node_id();
    status_.ended = absl::OkStatus();
    logged_.clear();
  }
  Log(absl::StrCat("follows ", Readable(message.hello().node_id()), ", incarnation ",
                   ToHex(message.hello().incarnation())));
}

void FeedFollower::NoteEnded(const absl::Status& why) {
  const std::string reason = Readable(why.message());
  {
    absl::MutexLock lock(&mutex_);
    ++status_.feeds_ended;
    status_.ended = absl::Status(why.code(), reason);
    if (logged_ == reason) return;
    logged_ = reason;
  }
  Log(absl::StrCat("no feed: ", reason));
}

void FeedFollower::Log(absl::string_view line) const {
  if (parts_.log != nullptr) parts_.log(absl::StrCat("holder ", address_, ": ", line));
}

// Between half of `wait` and all of it, so that routers that lost a holder together do not return
// so.
absl::Duration FeedFollower::Jittered(absl::Duration wait) const {
  uint8_t dice = 0;
  parts_.random->Fill(&dice, 1);
  return wait / 2 + wait / 2 * (dice / 255.0);
}

}  // namespace cairn::router
