#include "cache_node/pull/node_pulls.h"

#include <utility>
#include <vector>

#include "common/security/server_security.h"

namespace cairn::node {
namespace {

// Added to a thread's: it runs when nobody else wants to.
constexpr int kNice = 10;
constexpr uint64_t kQueueBytesMax = uint64_t{64} << 20;

ClientOptions OptionsOf(const PullConfig& config, const ClientSecurity& security) {
  ClientOptions options;
  options.credentials = security.credentials();
  options.channel.tls_name = config.tls_name;
  return options;
}

PullBatch::Parts BatchParts(const NodePulls::Parts& parts, const PullFences* fences, ByteRate* rate,
                            RetryWait* wait, const PullMetrics& metrics) {
  PullBatch::Parts batch;
  batch.store = parts.store;
  batch.fences = fences;
  batch.rate = rate;
  batch.wait = wait;
  batch.rates = parts.rates;
  batch.public_scope = parts.public_scope;
  batch.metrics = metrics;
  return batch;
}

}  // namespace

absl::StatusOr<NodePulls::Opened> NodePulls::Open(const PullConfig& config, FileWatch::Log log) {
  Opened opened;
  absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      ClientSecurity::Open(config.security, "peer-", log);
  if (!security.ok()) return security.status();
  opened.security = *std::move(security);
  if (!config.on()) return opened;
  absl::StatusOr<std::unique_ptr<PeerFile>> peers =
      PeerFile::Open(config.peer_file, PeerList::Parse, ReadSecurityFile);
  if (!peers.ok()) return peers.status();
  opened.peers = *std::move(peers);
  return opened;
}

NodePulls::NodePulls(const PullConfig& config, Opened opened, Parts parts)
    : security_(std::move(opened.security)),
      peers_(std::move(opened.peers), OptionsOf(config, *security_), security_.get(),
             {parts.hasher, parts.clock, parts.random, &wait_}),
      rate_(config.bytes_per_second.bytes(), parts.clock),
      metrics_(parts.metrics),
      puller_(BatchParts(parts, &fences_, &rate_, &wait_, metrics_), parts.clock),
      watch_(!peers_.has_file()
                 ? nullptr
                 : std::make_unique<FileWatch>(
                       std::vector<FileWatch::File>{{"peer", [this] { return peers_.Poll(); }}},
                       parts.log)),
      threads_(std::make_unique<Executor>(Executor::Options{.name = "pulls",
                                                            .threads = config.threads,
                                                            .queue_max = kPullsQueuedMax,
                                                            .queue_bytes_max = kQueueBytesMax,
                                                            .nice = kNice})),
      calls_({.node_id = parts.node_id,
              .store = parts.store,
              .sources = &peers_,
              .board = &board_,
              .puller = &puller_,
              .threads = threads_.get(),
              .rates = parts.rates,
              .public_scope = parts.public_scope,
              .clock = parts.clock,
              .settled = std::move(parts.settled),
              .metrics = metrics_}),
      in_hand_(parts.metrics->AddCallback(
          CallbackKind::kGauge, "cairn_pull_blocks_in_hand", "Blocks that pulls have in hand.",
          [this] { return static_cast<double>(board_.blocks()); })) {
  if (watch_ != nullptr) watch_->Start(kSecurityPollInterval);
}

NodePulls::~NodePulls() {
  Stop();
  threads_ = nullptr;  // Ends what is queued.
}

void NodePulls::Stop() {
  wait_.Stop();
  peers_.Stop();
  board_.Stop();
}

}  // namespace cairn::node
