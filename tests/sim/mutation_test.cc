// Breaks a node on purpose, in one way a test, and looks which invariant says so. What a mutation
// needs to show (a repeated request, a removal) comes by chance, so a few seeds are tried.
#include <gmock/gmock.h>

#include "cairn/v1/cache_node.pb.h"
#include "common/identity/segment_digest.h"
#include "common/wire/limits.h"
#include "tests/sim/simulation.h"

namespace cairn::sim {
namespace {

using google::protobuf::DynamicCastToGenerated;
using google::protobuf::Message;
using ::testing::AnyOf;
using ::testing::Contains;

constexpr uint64_t kSeedsTried = 12;

// What broke under the first seed that broke anything; empty when nothing did.
std::set<std::string> CaughtBy(NodeMutation* mutation) {
  for (uint64_t seed = 1; seed <= kSeedsTried; ++seed) {
    const SimResult result = Simulation(SimOptions::Of(seed), {mutation, mutation, mutation}).Run();
    if (!result.ok()) return result.verdict.broken;
  }
  return {};
}

TEST(SimMutationTest, ASoundNodeIsNotCaught) {
  NodeMutation sound;
  EXPECT_TRUE(CaughtBy(&sound).empty());
}

class FlipsAByte final : public NodeMutation {
 public:
  grpc::ByteBuffer OnFrame(grpc::ByteBuffer frame) override {
    grpc::Slice whole;
    EXPECT_TRUE(frame.DumpToSingleSlice(&whole).ok());
    const_cast<uint8_t*>(whole.end())[-1] ^= 1;
    return {&whole, 1};
  }
};

TEST(SimMutationTest, AByteThatFlipsOnTheWayOut) {
  FlipsAByte mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("no_wrong_bytes"));
}

// Hands out frames in one buffer, which the next frame takes over.
class ReusesMemory final : public NodeMutation {
 public:
  grpc::ByteBuffer OnFrame(grpc::ByteBuffer frame) override {
    grpc::Slice whole;
    EXPECT_TRUE(frame.DumpToSingleSlice(&whole).ok());
    EXPECT_LE(whole.size(), buffer_.size());
    std::copy(whole.begin(), whole.end(), buffer_.begin());
    const grpc::Slice lent(buffer_.data(), whole.size(), grpc::Slice::STATIC_SLICE);
    return {&lent, 1};
  }

 private:
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kMessageBytesMax);
};

TEST(SimMutationTest, MemoryThatIsReusedUnderAReader) {
  ReusesMemory mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("no_reuse_under_reader"));
}

// Says of blocks that are being written that they are there.
class ShowsHalfWritten final : public NodeMutation {
 public:
  void AfterCall(Method /*method*/, const Message& /*request*/, absl::Status* /*status*/,
                 Message* response) override {
    auto* lookup = DynamicCastToGenerated<v1::LookupResponse>(response);
    if (lookup == nullptr) return;
    for (v1::PromptResult& result : *lookup->mutable_results()) {
      for (v1::BlockRun& run : *result.mutable_runs()) {
        if (run.state() != v1::BLOCK_STATE_PENDING) continue;
        run.set_state(v1::BLOCK_STATE_HOST);
        result.set_blocks_present(result.blocks_present() + run.count());
      }
    }
  }
};

TEST(SimMutationTest, ABlockThatIsSeenBeforeItIsWritten) {
  ShowsHalfWritten mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("no_half_written_visible"));
}

class CountsHoles final : public NodeMutation {
 public:
  void AfterCall(Method /*method*/, const Message& /*request*/, absl::Status* /*status*/,
                 Message* response) override {
    auto* lookup = DynamicCastToGenerated<v1::LookupResponse>(response);
    if (lookup == nullptr) return;
    for (v1::PromptResult& result : *lookup->mutable_results()) {
      if (result.blocks_present() < result.blocks_total()) {
        result.set_blocks_present(result.blocks_present() + 1);
      }
    }
  }
};

TEST(SimMutationTest, AHoleThatIsCounted) {
  CountsHoles mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("no_hole_counted"));
}

// Does nothing when it is called so, and says that it did.
class Ignores final : public NodeMutation {
 public:
  explicit Ignores(Method method) : method_(method) {}
  bool BeforeCall(Method method, Caller* /*caller*/, Message* /*request*/) override {
    return method != method_;
  }

 private:
  const Method method_;
};

TEST(SimMutationTest, ABlockThatIsDeletedAndStays) {
  Ignores mutation(Method::kDelete);
  EXPECT_THAT(CaughtBy(&mutation), Contains("removed_stays_gone"));
}

// What is written under a token of before counts as never committed.
TEST(SimMutationTest, AScopeThatIsClearedAndStays) {
  Ignores mutation(Method::kClearScope);
  EXPECT_THAT(CaughtBy(&mutation), Contains(AnyOf("removed_stays_gone", "no_half_written_visible",
                                                  "matches_were_there", "fences_hold")));
}

TEST(SimMutationTest, ANamespaceThatIsRetiredAndStays) {
  Ignores mutation(Method::kRetireNamespace);
  EXPECT_THAT(CaughtBy(&mutation), Contains(AnyOf("removed_stays_gone", "no_half_written_visible",
                                                  "matches_were_there", "fences_hold")));
}

class ForgetsFences final : public NodeMutation {
 public:
  bool NotesFences() override { return false; }
};

TEST(SimMutationTest, WhatWasClearedAndComesBackFromAnotherNode) {
  ForgetsFences mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("fences_hold"));
}

// Takes one tenant for another.
class MistakesTenants final : public NodeMutation {
 public:
  bool BeforeCall(Method method, Caller* caller, Message* /*request*/) override {
    const bool reads = method == Method::kLookup || method == Method::kGet;
    if (reads && caller->tenant == "mallory") caller->tenant = "acme";
    return true;
  }
};

TEST(SimMutationTest, ATenantThatReadsAnothersBlocks) {
  MistakesTenants mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("no_crossing_of_tenants"));
}

class ObeysAnyone final : public NodeMutation {
 public:
  bool BeforeCall(Method method, Caller* caller, Message* /*request*/) override {
    if (method == Method::kEndLease || method == Method::kAbort) caller->tenant = "acme";
    return true;
  }
};

TEST(SimMutationTest, ALeaseThatAnotherTenantEnds) {
  ObeysAnyone mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("foreign_ids_refused"));
}

// Grants a lease and keeps it for a moment.
class CutsLeasesShort final : public NodeMutation {
 public:
  bool BeforeCall(Method /*method*/, Caller* /*caller*/, Message* request) override {
    auto* lookup = DynamicCastToGenerated<v1::LookupRequest>(request);
    if (lookup != nullptr && lookup->has_lease()) lookup->mutable_lease()->set_ttl_ms(1);
    return true;
  }
  void AfterCall(Method /*method*/, const Message& /*request*/, absl::Status* /*status*/,
                 Message* response) override {
    auto* lookup = DynamicCastToGenerated<v1::LookupResponse>(response);
    if (lookup != nullptr && !lookup->lease().empty()) lookup->set_lease_ttl_ms(5000);
  }
};

TEST(SimMutationTest, ALeaseThatDoesNotHold) {
  CutsLeasesShort mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("leases_hold"));
}

class ForgetsRequestIds final : public NodeMutation {
 public:
  bool BeforeCall(Method /*method*/, Caller* /*caller*/, Message* request) override {
    if (auto* reserve = DynamicCastToGenerated<v1::ReserveRequest>(request)) {
      reserve->clear_request_id();
    }
    return true;
  }
};

TEST(SimMutationTest, ARequestThatIsAnsweredTwiceDifferently) {
  ForgetsRequestIds mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("same_request_same_answer"));
}

// Hears of the end of no lease, and lets leases live long.
class KeepsLeases final : public NodeMutation {
 public:
  bool BeforeCall(Method method, Caller* caller, Message* request) override {
    auto* lookup = DynamicCastToGenerated<v1::LookupRequest>(request);
    if (lookup != nullptr && lookup->has_lease()) lookup->mutable_lease()->set_ttl_ms(600'000);
    return method != Method::kEndLease || caller->tenant == "mallory";
  }
};

TEST(SimMutationTest, ALeaseThatIsNeverOver) {
  KeepsLeases mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("quiet_leaves_nothing"));
}

// Leaves the first removal of each live batch out of the feed, and out of the digests too.
class ForgetsRemovalsInFeed final : public NodeMutation {
 public:
  void OnFeedMessage(v1::WatchBlocksResponse* message) override {
    if (message->has_hello()) told_.clear();
    if (message->has_batch()) TakeBatch(message->mutable_batch());
    if (!message->has_heartbeat()) return;
    for (v1::ShardDigest& digest : *message->mutable_heartbeat()->mutable_shards()) {
      for (v1::TierDigest& tier : *digest.mutable_tiers()) {
        const auto& [blocks, sum] = told_[digest.shard()];
        tier.set_blocks(tier.blocks() + blocks);
        tier.set_key_sum(tier.key_sum() + sum);
      }
    }
  }

 private:
  void TakeBatch(v1::BlockBatch* batch) {
    auto& [blocks, sum] = told_[batch->shard()];
    if (batch->replaces()) blocks = sum = 0;
    const size_t removal = batch->tier_masks().find('\0');
    if (removal == std::string::npos) return;
    const BlockKey key = *BlockKey::FromBytes(batch->keys().substr(removal * kKeyBytes, kKeyBytes));
    batch->mutable_keys()->erase(removal * kKeyBytes, kKeyBytes);
    batch->mutable_tier_masks()->erase(removal, 1);
    batch->mutable_reasons()->erase(removal, 1);
    ++blocks;
    sum += FeedKeyDigest(key);
  }

  // By shard: blocks that the watcher believes to be there, and are not.
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> told_;
};

TEST(SimMutationTest, ARemovalThatTheFeedForgets) {
  ForgetsRemovalsInFeed mutations[3];
  std::set<std::string> broken;
  for (uint64_t seed = 1; seed <= kSeedsTried && broken.empty(); ++seed) {
    broken = Simulation(SimOptions::Of(seed), {&mutations[0], &mutations[1], &mutations[2]})
                 .Run()
                 .verdict.broken;
  }
  EXPECT_THAT(broken, Contains("index_equals_listing"));
}

class StoresNothing final : public NodeMutation {
 public:
  void AfterCall(Method /*method*/, const Message& /*request*/, absl::Status* /*status*/,
                 Message* response) override {
    auto* reserve = DynamicCastToGenerated<v1::ReserveResponse>(response);
    if (reserve == nullptr || reserve->answers().empty()) return;
    reserve->clear_token();
    for (v1::ReserveAnswer& answer : *reserve->mutable_answers()) {
      answer.set_outcome(v1::RESERVE_OUTCOME_UNSPECIFIED);
    }
    reserve->mutable_answers(0)->set_outcome(v1::RESERVE_OUTCOME_DECLINED);
  }
};

TEST(SimMutationTest, ACacheThatStoresNothing) {
  StoresNothing mutation;
  EXPECT_THAT(CaughtBy(&mutation), Contains("requests_hit"));
}

}  // namespace
}  // namespace cairn::sim
