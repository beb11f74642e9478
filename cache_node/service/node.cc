#include "cache_node/service/node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_node/service/disk_opening.h"
#include "cache_node/service/disk_space.h"
#include "cache_node/service/memory_terms.h"
#include "cache_node/store/policies/policy_registry.h"
#include "common/base/check.h"
#include "common/rpc/server_options.h"

namespace cairn::node {
namespace {

// What may be kept for tenants together: the rest is for all to move in.
constexpr uint64_t kKeptNumerator = 3;
constexpr uint64_t kKeptDenominator = 4;

// Longest that gRPC keeps sent bytes after its server is gone.
constexpr absl::Duration kPinsReleasedWithin = absl::Seconds(10);

// Of calls, and of removals.
constexpr uint64_t kExecutors = 2;
constexpr int kRemovalThreads = 2;

BlockStore::Options StoreOptions(const NodeConfig& config) {
  BlockStore::Options options;
  options.feed_shards = static_cast<uint32_t>(config.feed_shards);
  options.index_bytes_max = config.index_memory.bytes();
  options.namespace_bytes_max = config.namespace_memory.bytes();
  options.leased_bytes_max = config.leased_memory.bytes();
  options.reserved_bytes_max = config.reserved_memory.bytes();
  options.stays_bytes_max = config.pin_memory.bytes();
  options.removed_memory_entries = static_cast<size_t>(config.removed_remembered);
  options.watcher_queue_records = static_cast<size_t>(config.feed_queue_records);
  options.lease_ttl_default = config.lease_ttl;
  options.lease_ttl_max = config.lease_ttl_max;
  options.token_ttl_default = config.token_ttl;
  options.token_ttl_max = config.token_ttl_max;
  options.token_life_max = config.token_life_max;
  if (config.disk.on()) options.disk = config.disk.StoreOptions();
  if (config.device.on()) options.device = config.device.StoreOptions();
  return options;
}

// REQUIRES: the configuration is valid.
std::unique_ptr<EvictionPolicyFactory> PoliciesOf(const NodeConfig& config) {
  absl::StatusOr<std::unique_ptr<EvictionPolicyFactory>> policies =
      MakeEvictionPolicies(config.EvictionPolicyName());
  CAIRN_CHECK_OK(policies.status());
  return *std::move(policies);
}

Executor::Options ExecutorOptions(const NodeConfig& config, std::string name, int threads) {
  return {.name = std::move(name),
          .threads = threads,
          .queue_max = static_cast<size_t>(config.executor_queue_max),
          .queue_bytes_max = kWaitingCallBytes.bytes() / kExecutors};
}

InFlightBytes::Options AdmissionOptions(const NodeConfig& config) {
  InFlightBytes::Options options;
  options.bytes_max = config.in_flight_bytes.bytes();
  options.waiting_max = static_cast<size_t>(config.writers_waiting_max);
  options.wait_max = config.admission_wait;
  options.stall_max = config.write_stall;
  return options;
}

RequestMemory::Options MemoryOptions(const NodeConfig& config) {
  RequestMemory::Options options;
  options.bytes_max = config.request_memory.bytes();
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Start(const NodeConfig& config, DiskTier* disk,
                                                  Log log) {
  KeepGrpc();
  if (absl::Status status = config.Validate(); !status.ok()) return status;
  const absl::StatusOr<ByteSize> limit = MemoryLimitOf(config, "/");
  if (!limit.ok()) return limit.status();
  absl::StatusOr<std::unique_ptr<ServerSecurity>> security =
      ServerSecurity::Open(config.security, log);
  if (!security.ok()) return security.status();
  Opened parts;
  parts.security = *std::move(security);
  if (!config.quota_file.empty()) {
    absl::StatusOr<std::unique_ptr<TenantQuotaFile>> quotas = OpenTenantQuotas(
        config.quota_file, ByteSize(config.host_memory.bytes() / kKeptDenominator * kKeptNumerator),
        ReadSecurityFile);
    if (!quotas.ok()) return quotas.status();
    parts.quotas = *std::move(quotas);
  }
  if (!config.public_prefix_file.empty()) {
    absl::StatusOr<std::unique_ptr<PublicPrefixFile>> prefixes =
        OpenPublicPrefixes(config.public_prefix_file);
    if (!prefixes.ok()) return prefixes.status();
    parts.public_prefixes = *std::move(prefixes);
  }
  parts.disk.tier = disk;
  if (config.disk.on() && disk == nullptr) {
    absl::StatusOr<std::unique_ptr<DiskTier>> opened = OpenDiskTier(config.disk);
    if (!opened.ok()) return opened.status();
    parts.disk.own = *std::move(opened);
    parts.disk.tier = parts.disk.own.get();
    const absl::StatusOr<std::string> line =
        DiskStartLine(config.disk, parts.disk.tier->GetStats(), DiskSpaceOf(config.disk.dir));
    if (!line.ok()) return line.status();
    if (log != nullptr) log(*line);
  }
  absl::StatusOr<NodePulls::Opened> pulls = NodePulls::Open(config.pull, log);
  if (!pulls.ok()) return pulls.status();
  parts.pulls = *std::move(pulls);
  const absl::Status device = NodeDevice::Open(config.device, &parts.device);
  if (!device.ok()) return device;
  absl::StatusOr<std::unique_ptr<HostMemory>> memory =
      HostMemory::Create(config.host_memory.bytes(), NodeDevice::PinnerOf(parts.device.get()));
  if (!memory.ok()) return memory.status();
  parts.memory = *std::move(memory);
  parts.log = std::move(log);
  std::unique_ptr<TenantQuotaFile> quotas = std::move(parts.quotas);
  std::unique_ptr<Node> node(new Node(config, *limit, std::move(parts)));
  if (quotas != nullptr) node->LimitTenants(std::move(quotas));
  node->file_metrics_.emplace(
      &node->metrics_, "cairn_node",
      std::vector<const FileWatch*>{
          node->security_->files(), node->quota_watch_.get(), node->pulls_.files(),
          node->pulls_.security_files(),
          node->public_watch_ == nullptr ? nullptr : node->public_watch_->files()});
  if (node->disk_threads_.has_value()) node->disk_threads_->Open();
  if (node->public_watch_ != nullptr) node->public_watch_->Start();
  if (absl::Status status = node->Listen(); !status.ok()) return status;
  if (node->disk_threads_.has_value()) node->disk_threads_->Start();
  return node;
}

Node::Node(const NodeConfig& config, ByteSize limit, Opened opened)
    : config_(config),
      security_(std::move(opened.security)),
      log_(std::move(opened.log)),
      rpc_metrics_(&metrics_, &clock_),
      time_(&clock_, kTickAdvanceMax),
      disk_(std::move(opened.disk)),
      ledger_(disk_.tier == nullptr ? nullptr : std::make_unique<TierLedger>(disk_.tier)),
      disk_bells_(disk_.tier == nullptr
                      ? nullptr
                      : std::make_unique<DiskBells>(static_cast<size_t>(config.disk.read_threads))),
      device_(std::move(opened.device)),
      waker_(&router_),
      waiter_(&waiting_, &clock_),
      store_(std::make_unique<BlockStore>(
          StoreOptions(config), &time_, &random_, &counters_, std::move(opened.memory),
          PoliciesOf(config), StoreSignals(), ledger_.get(), NodeDevice::MemoryOf(device_.get()))),
      in_flight_(AdmissionOptions(config), &clock_),
      rates_(&clock_),
      node_metrics_(&metrics_, store_.get(), &counters_, &in_flight_, &rates_),
      request_memory_(MemoryOptions(config)),
      audit_(log_, &clock_),
      audit_left_out_(metrics_.AddCallback(
          CallbackKind::kCounter, "cairn_node_audit_lines_left_out_total",
          "Audit lines of refused callers that their rate did not let through.",
          [this] { return static_cast<double>(audit_.left_out()); })),
      public_watch_(config.public_prefix_file.empty() && !config.security.knows_callers()
                        ? nullptr
                        : std::make_unique<PublicWatch>(std::move(opened.public_prefixes),
                                                        store_.get(), &metrics_, log_)),
      facts_({.node_id = config.node_id,
              .incarnation = random_.New<Incarnation>(),
              .worker_address = config.worker_address,
              .shards = static_cast<uint32_t>(config.feed_shards),
              .worker_kv_tokens = static_cast<uint64_t>(config.worker_kv_tokens),
              .labels = *LabelsFromText(config.labels)},
             config.MemoryFacts(limit), store_.get(), &in_flight_, &counters_, disk_.tier,
             config.decode.on() ? NodeFacts::DecodeReporter([this](v1::DecodeReport* report) {
               decode_->FillReport(report);
             })
                                : nullptr),
      feed_messages_(store_.get(), &facts_),
      get_slots_(static_cast<uint32_t>(config.gets_max)),
      pulls_(config.pull, std::move(opened.pulls), PullParts()),
      local_(config.local, LocalParts()),
      calls_({.store = store_.get(),
              .counters = &counters_,
              .hasher = &hasher_,
              .clock = &clock_,
              .memory = &request_memory_,
              .rates = &rates_,
              .public_scope = public_watch_ == nullptr ? nullptr : &public_watch_->scope(),
              .facts = &facts_,
              .fences = &pulls_.fences(),
              .local = &local_,
              .loads = disk_.tier != nullptr || device_ != nullptr}),
      executor_(ExecutorOptions(config, "calls", config.executor_threads)),
      removals_(ExecutorOptions(config, "removals", kRemovalThreads)),
      decode_(std::make_unique<NodeDecode>(config.decode, DecodeParts())),
      service_(ServiceParts()),
      generic_(GenericParts()) {
  if (disk_.tier != nullptr) MakeDiskThreads();
  if (device_ != nullptr) device_->Start(store_.get(), &counters_, &metrics_);
  ticker_.emplace("ticker", kTick, [this] { Tick(); });
  heartbeat_.emplace("heartbeat", config_.heartbeat, [this] { router_.Heartbeat(); });
}

void Node::LimitTenants(std::unique_ptr<TenantQuotaFile> quotas) {
  tenant_limits_.emplace(std::move(quotas), store_.get(), &rates_);
  quota_watch_ = std::make_unique<FileWatch>(
      std::vector<FileWatch::File>{{"quota", [this] { return tenant_limits_->Poll(); }}}, log_);
  quota_watch_->Start(kSecurityPollInterval);
}

absl::Status Node::Listen() {
  if (!config_.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<MetricsServer>> metrics_server =
        MetricsServer::Start(metrics_, config_.metrics_listen);
    if (!metrics_server.ok()) return metrics_server.status();
    metrics_server_ = *std::move(metrics_server);
  }
  if (absl::Status status = local_.Start(); !status.ok()) return status;
  RpcServer::Options options;
  options.listen_addresses = config_.listen;
  options.credentials = security_->credentials();
  options.insecure = config_.security.insecure;
  options.insecure_anywhere = config_.security.insecure_anywhere;
  options.services = {RpcServer::Named<v1::CacheNode>(&service_),
                      RpcServer::Named<v1::Decode>(decode_->service())};
  options.generic = &generic_;
  // Without it each connection keeps up to 2 MiB of read buffer after a burst (measured: 1,000
  // writers held 1.8 GB); near the quota gRPC takes idle buffers back.
  options.transport_bytes = TransportBytesOf(config_).bytes();
  options.configure = [](grpc::ServerBuilder& builder) { ApplyServerOptions({}, &builder); };
  absl::StatusOr<std::unique_ptr<RpcServer>> server = RpcServer::Start(std::move(options));
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  facts_.SetAddresses(config_.advertise.empty() ? addresses() : config_.advertise);
  server_->SetReady(true);
  return absl::OkStatus();
}

Node::~Node() {
  file_metrics_.reset();  // A scrape may be under way until the metrics server is gone.
  quota_watch_ = nullptr;
  if (public_watch_ != nullptr) public_watch_->Stop();
  server_ = nullptr;  // Cancels and awaits all calls.
  metrics_server_ = nullptr;
  pulls_.Stop();
  heartbeat_.reset();
  ticker_.reset();
  decode_->Stop();
  if (device_ != nullptr) device_->Stop();
  disk_threads_.reset();
  local_.Stop();
  AwaitPinsReleased();
}

std::vector<std::string> Node::addresses() const {
  std::vector<std::string> addresses;
  for (const ListenAddress& address : server_->addresses()) {
    addresses.push_back(address.ToString());
  }
  return addresses;
}

int Node::metrics_port() const { return metrics_server_ == nullptr ? 0 : metrics_server_->port(); }

void Node::Tick() {
  time_.Tick();
  store_->Tick();
  store_->EndRetention(clock_.WallNow());
  in_flight_.Tick();
  const uint64_t rights = security_->callers().Generation();
  if (std::exchange(rights_seen_, rights) != rights) in_flight_.RightsChanged();
  get_slots_.Tick();
  waiter_.Tick();
  local_.Tick();
  decode_->Tick();
  if (facts_.draining() && IsIdle()) idle_.Set();
}

bool Node::IsIdle() const {
  const StoreStatus status = store_->Status();
  const InFlightBytes::Counts in_flight = in_flight_.counts();
  return status.leases == 0 && status.reserved_bytes == 0 && status.pins == 0 &&
         in_flight.bytes == 0 && in_flight.waiting == 0 && decode_->IsIdle() &&
         (!disk_threads_.has_value() || disk_threads_->drained());
}

void Node::Drain() {
  server_->SetReady(false);
  facts_.SetDraining();
  local_.Drain();
  pulls_.Stop();
  if (disk_threads_.has_value()) disk_threads_->Drain();
  router_.Heartbeat();
  idle_.WaitFor(config_.drain_grace);
  router_.EndAll(absl::UnavailableError("the node is draining; watch another one"));
  decode_->EndStreams(absl::UnavailableError("the node is draining; use another one"));
  server_->Shutdown(kCutGrace);
}

void Node::AwaitPinsReleased() {
  const WakeEvent never;
  const absl::Time deadline = clock_.SteadyNow() + kPinsReleasedWithin;
  while (get_pins_.pins() > 0) {
    CAIRN_CHECK_MSG(clock_.SteadyNow() < deadline, "pins that no call holds");
    never.WaitFor(absl::Milliseconds(1));
  }
}

}  // namespace cairn::node
