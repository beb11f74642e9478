// ClientTest: a client before a FakeNode, with a fake clock that retries move.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <vector>

#include "client/cpp/cache_node_client.h"
#include "common/identity/block_hasher.h"
#include "tests/client/cpp/fake_node.h"
#include "tests/client/cpp/fake_wait.h"
#include "tests/client/cpp/sample_blocks.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/seeded_random.h"

namespace cairn::testing {

class ClientTest : public ::testing::Test {
 protected:
  static constexpr uint8_t kSentinel = 0xa5;

  ClientTest() { Use(TwoGroups()); }

  void Use(const Namespace& fields) {
    client_.reset();
    handle_.emplace(HandleOf(fields));
    node_ = std::make_unique<FakeNode>(*handle_);
    ClientOptions options;
    options.target = node_->target();
    options.control_timeout = options.data_timeout = absl::Seconds(60);
    client_ = std::make_unique<CacheNodeClient>(options,
                                                ClientParts{&hasher_, &clock_, &random_, &wait_});
  }

  // A prompt of this many full blocks.
  Prompt MakePrompt(size_t blocks, const std::string& tenant = "acme") {
    tokens_.resize(blocks * handle_->block_tokens());
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<uint32_t>(i);
    const Region region{.scope = {tenant, "", ""}, .tokens = tokens_, .external_ids = {}};
    absl::StatusOr<Prompt> prompt = client_->MakePrompt(*handle_, {&region, 1});
    CAIRN_CHECK_OK(prompt.status());
    return *std::move(prompt);
  }

  // Memory with the synthetic payload of these blocks.
  std::vector<uint8_t> Payload(const std::vector<BlockKey>& keys) const {
    std::vector<uint8_t> bytes(keys.size() * handle_->block_bytes());
    for (size_t i = 0; i < keys.size(); ++i) {
      FillSyntheticBlock(
          handle_->payload_map(), keys[i],
          absl::MakeSpan(bytes).subspan(i * handle_->block_bytes(), handle_->block_bytes()));
    }
    return bytes;
  }

  absl::StatusOr<PutResult> Put(const Prompt& prompt, const PutOptions& options = {}) {
    std::vector<uint8_t> bytes = Payload(prompt.keys());
    const ContiguousBlocks source(&handle_->payload_map(), absl::MakeSpan(bytes));
    return client_->Put(*handle_, prompt, source, options);
  }

  // Gets into sentinels; the bytes are in buffer_.
  GetResult Get(const std::vector<BlockKey>& keys, const GetOptions& options = {}) {
    buffer_.assign(keys.size() * handle_->block_bytes(), kSentinel);
    const ContiguousBlocks place(&handle_->payload_map(), absl::MakeSpan(buffer_));
    return client_->Get(*handle_, keys, place, options);
  }

  FakeClock clock_;
  FakeWait wait_{&clock_};
  SeededRandom random_{7};
  Sha256BlockHasher hasher_;
  std::optional<NamespaceHandle> handle_;
  std::unique_ptr<FakeNode> node_;
  std::unique_ptr<CacheNodeClient> client_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> buffer_;
};

}  // namespace cairn::testing
