// NodeFixture: a whole node in this process, called through the generated classes over a real
// channel, as clients in other languages would; and a small vocabulary of blocks with known bytes.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cache_node/service/node.h"
#include "cairn/v1/cache_node.grpc.pb.h"
#include "common/identity/namespace.h"
#include "common/identity/payload_map.h"

namespace cairn::node {

// One prompt of whole blocks in the scope of tenant `public`.
struct TestPrompt {
  std::vector<uint32_t> tokens;
  std::vector<BlockKey> keys;
};

class NodeFixture : public ::testing::Test {
 protected:
  NodeFixture();

  // Small, on free ports. Tests that need another one change it and call StartNode.
  static NodeConfig SmallConfig();
  // `disk`: in place of a tier in a directory.
  void StartNode(const NodeConfig& config, DiskTier* disk = nullptr);

  // A context whose call ends after a while whatever happens.
  static std::unique_ptr<grpc::ClientContext> Context();
  // The same with the caller's token.
  std::unique_ptr<grpc::ClientContext> CallerContext() const;
  std::unique_ptr<v1::CacheNode::Stub> NewStub() const;

  std::string Register(const Namespace& name_space, const std::string& name);
  // Of the namespace that the node has from the start.
  TestPrompt MakePrompt(uint32_t seed, size_t blocks) const;
  // What block `key` has at a segment.
  static std::string SegmentBytes(const BlockKey& key, const SegmentId& id, uint64_t size);

  v1::ReserveRequest ReserveRequestOf(const TestPrompt& prompt) const;
  // The token; the test fails when not all was reserved.
  std::string Reserve(const TestPrompt& prompt);
  // Frames of whole segments of one block.
  v1::WriteRequest FrameOf(const std::string& token, const TestPrompt& prompt,
                           uint32_t block) const;
  grpc::Status WriteFrames(const std::vector<v1::WriteRequest>& frames,
                           std::vector<v1::WriteResponse>* responses = nullptr);
  v1::CommitRequest CommitRequestOf(const std::string& token, const TestPrompt& prompt) const;
  // Reserve, write and commit.
  void Put(const TestPrompt& prompt);

  v1::LookupRequest LookupRequestOf(const TestPrompt& prompt) const;
  uint32_t Present(const TestPrompt& prompt);
  v1::GetRequest GetRequestOf(const TestPrompt& prompt) const;
  grpc::Status Get(const v1::GetRequest& request, std::vector<v1::GetResponse>* frames,
                   v1::CacheNode::Stub* stub = nullptr);
  v1::DescribeResponse Describe();

  // The pieces' bytes put together as (block, segment index) -> bytes; checks each piece's shape
  // and the digest of every whole segment.
  std::map<std::pair<uint32_t, size_t>, std::string> Assemble(
      const TestPrompt& prompt, const PayloadMap& map,
      const std::vector<v1::GetResponse>& frames) const;

  // Of nodes that ask who calls, and whose blocks prompts are.
  std::string token_;
  std::string tenant_ = "public";

  Namespace namespace_;
  PayloadMap map_;
  std::unique_ptr<Node> node_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::CacheNode::Stub> stub_;
  std::string fingerprint_;
};

}  // namespace cairn::node
