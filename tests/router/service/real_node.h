// RealNode: a whole cache node in this process, with a client, at an address that stays the same
// over restarts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache_node/service/node.h"
#include "client/cpp/cache_node_client.h"
#include "client/cpp/namespace_handle.h"
#include "client/cpp/prompt.h"

namespace cairn::router {

class RealNode {
 public:
  // Serves; knows no namespace yet. `parts` outlive it. `labels` are key=value.
  RealNode(std::string id, std::string worker, const ClientParts& parts,
           std::vector<std::string> labels = {});

  // host:port.
  const std::string& address() const { return address_; }
  CacheNodeClient& client() { return *client_; }

  // Ends without a word to anyone.
  void Kill();
  // Serves again, empty, as another run.
  void Restart();

  void Register(const NamespaceHandle& name_space);
  // Writes the prompt's full blocks, with synthetic payload.
  void Put(const NamespaceHandle& name_space, const Prompt& prompt);

 private:
  void Start();

  const std::string id_;
  const std::string worker_;
  const ClientParts parts_;
  const std::vector<std::string> labels_;
  std::string address_ = "127.0.0.1:0";
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<CacheNodeClient> client_;
};

}  // namespace cairn::router
