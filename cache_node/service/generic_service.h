// GenericService: the calls that the typed service does not take: Write, whose messages must not be
// read before they are admitted, and names that do not exist.
//
// Borrows its parts, which must outlive the server.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>

#include "cache_node/service/node_facts.h"
#include "cache_node/service/rpc_metrics.h"
#include "cache_node/service/write_stream.h"
#include "common/rpc/caller_resolver.h"

namespace cairn::node {

class GenericService final : public grpc::CallbackGenericService {
 public:
  struct Parts {
    WriteStream::Parts write;
    const CallerResolver* callers = nullptr;
    const NodeFacts* facts = nullptr;
    RpcMetrics* metrics = nullptr;
  };

  explicit GenericService(const Parts& parts) : parts_(parts) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  grpc::ServerGenericBidiReactor* StartWrite(const grpc::GenericCallbackServerContext& context);

  const Parts parts_;
  std::atomic<uint64_t> next_writer_{1};
};

}  // namespace cairn::node
