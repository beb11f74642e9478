// FakeHolder: a FakeNode with a FakeDecode over its blocks, on one port, and clients of both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/cpp/cache_node_client.h"
#include "client/cpp/decode/decode_client.h"
#include "common/rpc/prompt_conversion.h"
#include "tests/client/cpp/decode/fake_decode.h"
#include "tests/client/cpp/fake_node.h"

namespace cairn::testing {

class FakeHolder {
 public:
  FakeHolder(const NamespaceHandle& name_space, const ClientParts& parts)
      : name_space_(name_space),
        decode(name_space, {[this](const BlockKey& key) { return cache.Block(key); },
                            [this](const std::string&) { return LookedUp(); }}),
        cache(name_space, &decode) {
    ClientOptions options;
    options.target = cache.target();
    options.control_timeout = options.data_timeout = absl::Seconds(60);
    options.use_local = false;
    decode_client = std::make_unique<DecodeClient>(options, parts);
    cache_client = std::make_unique<CacheNodeClient>(options, parts);
  }
  // What is held would keep the server from ending.
  ~FakeHolder() { decode.Release(); }

 private:
  // Keys of the last lookup, which is what the fake node's only lease is of.
  std::vector<BlockKey> LookedUp() const {
    const std::vector<v1::LookupRequest> lookups = cache.lookups();
    if (lookups.empty() || lookups.back().prompts().empty()) return {};
    const PromptFields prompt = PromptFromProto(lookups.back().prompts(0)).value();
    if (!prompt.keys.empty()) return prompt.keys;
    const Sha256BlockHasher hasher;
    return PromptKeys(hasher, name_space_.key_rules(), prompt.regions, prompt.extras).value();
  }

  const NamespaceHandle name_space_;

 public:
  FakeDecode decode;
  FakeNode cache;
  std::unique_ptr<DecodeClient> decode_client;
  std::unique_ptr<CacheNodeClient> cache_client;
};

}  // namespace cairn::testing
