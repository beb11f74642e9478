#include "tests/router/service/real_node.h"

#include <utility>

#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"

namespace cairn::router {

RealNode::RealNode(std::string id, std::string worker, const ClientParts& parts,
                   std::vector<std::string> labels)
    : id_(std::move(id)), worker_(std::move(worker)), parts_(parts), labels_(std::move(labels)) {
  Start();
}

void RealNode::Start() {
  node::NodeConfig config;
  config.listen = {address_};
  config.security.insecure = true;
  config.metrics_listen.clear();
  config.node_id = id_;
  config.worker_address = worker_;
  config.worker_kv_tokens = 1 << 20;
  config.labels = labels_;
  config.host_memory = ByteSize::MiB(16);
  config.index_memory = ByteSize::MiB(8);
  config.in_flight_bytes = ByteSize::MiB(4);
  config.request_memory = ByteSize::MiB(1);
  config.connections_max = 16;
  config.feed_queue_records = 1024;
  absl::StatusOr<std::unique_ptr<node::Node>> node = node::Node::Start(config);
  CAIRN_CHECK_OK(node.status());
  node_ = *std::move(node);
  address_ = node_->addresses().front();
  ClientOptions options;
  options.target = address_;
  options.data_channels = 1;
  client_ = std::make_unique<CacheNodeClient>(options, parts_);
}

void RealNode::Kill() {
  client_ = nullptr;
  node_ = nullptr;
}

void RealNode::Restart() {
  Kill();
  Start();
}

void RealNode::Register(const NamespaceHandle& name_space) {
  CAIRN_CHECK_OK(client_->RegisterNamespace(name_space.name(), name_space.fields()).status());
}

void RealNode::Put(const NamespaceHandle& name_space, const Prompt& prompt) {
  std::vector<uint8_t> bytes(prompt.block_count() * name_space.block_bytes());
  for (size_t i = 0; i < prompt.block_count(); ++i) {
    FillSyntheticBlock(
        name_space.payload_map(), prompt.keys()[i],
        absl::MakeSpan(bytes).subspan(i * name_space.block_bytes(), name_space.block_bytes()));
  }
  const ContiguousBlocks source(&name_space.payload_map(), absl::MakeSpan(bytes));
  const absl::StatusOr<PutResult> put = client_->Put(name_space, prompt, source);
  CAIRN_CHECK_OK(put.status());
  CAIRN_CHECK(put->complete());
}

}  // namespace cairn::router
