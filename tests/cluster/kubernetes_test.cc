// A router whose nodes are the endpoints of a Kubernetes service, over TLS from a fake API server:
// pods come, terminate, and are replaced at the same address while a replay runs, and the API
// server goes away meanwhile. Slices have one port, and all pods are on loopback: each has its own
// slice.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/cluster/cluster_fixture.h"
#include "tests/cluster/staged_replay.h"
#include "tests/router/membership/kubernetes/slices.h"
#include "tests/testing/fake_kubernetes_api.h"
#include "tests/testing/test_certificates.h"

namespace cairn::testing {
namespace {

constexpr size_t kPart = 200;  // Requests.
// The contract's bound: nothing new for a node that drains.
constexpr absl::Duration kDrainBound = absl::Seconds(2);

class KubernetesTest : public ClusterTest {
 protected:
  KubernetesTest() : folder_(MakeTempFolder()) {
    ReplaceFile(folder_ + "/ca.crt", authority_.certificate());
    ReplaceFile(folder_ + "/token", "good");
    const IssuedCertificate issued = authority_.Issue({.common_name = "kubernetes", .uri = ""});
    api_ = std::make_unique<FakeKubernetesApi>(FakeKubernetesApi::Options{
        .tls = HttpConnection::Tls{issued.certificate, issued.key}, .token = "good"});
  }
  ~KubernetesTest() override { std::filesystem::remove_all(folder_); }

  // What stands at the node's address is the pod `uid`.
  void PutPod(size_t index, const std::string& uid, bool ready = true, bool terminating = false) {
    const std::vector<std::string> address = absl::StrSplit(node(index).address(), ':');
    api_->Put(router::SliceJson(absl::StrCat("slice-", index),
                                {{address[0], uid, ready, terminating}}, "IPv4",
                                std::stoi(address[1])));
  }
  void Start(std::vector<std::string> flags = {}) {
    for (const std::string& flag : {std::string("--kubernetes-service=prod/cairn"),
                                    std::string("--kubernetes-port-name=grpc"),
                                    absl::StrCat("--kubernetes-api=", api_->url()),
                                    absl::StrCat("--kubernetes-ca=", folder_, "/ca.crt"),
                                    absl::StrCat("--kubernetes-token-file=", folder_, "/token")}) {
      flags.push_back(flag);
    }
    // A node that came is to have its share at once: the replay is over before a ramp is.
    flags.push_back("--ramp-ms=0");
    StartRouter({}, flags);
  }
  static bool AreExact(const ReplicaList& list, size_t count) {
    return list.holders.size() == count &&
           std::all_of(list.holders.begin(), list.holders.end(), [](const HolderEntry& holder) {
             return holder.state == v1::HOLDER_STATE_EXACT;
           });
  }
  bool AwaitHolders(size_t count) {
    return AwaitList([count](const ReplicaList& list) { return AreExact(list, count); });
  }
  static size_t TakenBy(const std::string& node_id, const std::vector<WorkOutcome>& outcomes) {
    return static_cast<size_t>(std::count_if(
        outcomes.begin(), outcomes.end(),
        [&node_id](const WorkOutcome& outcome) { return outcome.replica.node_id == node_id; }));
  }
  void RunUntil(StagedReplay* replay, size_t count) {
    replay->RunUntil(count);
    ASSERT_TRUE(replay->AwaitDone(count, kSoon)) << replay->done() << " of " << count;
  }
  static void ExpectNothingLost(StagedReplay* replay) {
    const absl::StatusOr<replay::ReplayReport> report = replay->Finish();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->failed_requests, 0u);
    EXPECT_EQ(report->wrong_bytes, 0u);
  }
  // The same requests, so many times.
  static std::vector<replay::TraceRequest> Rounds(size_t count) {
    const std::vector<replay::TraceRequest> round = Generate(1, kPart);
    std::vector<replay::TraceRequest> requests;
    for (size_t i = 0; i < count; ++i) {
      requests.insert(requests.end(), round.begin(), round.end());
    }
    return requests;
  }

  const std::string folder_;
  TestAuthority authority_{"cluster"};
  std::unique_ptr<FakeKubernetesApi> api_;
};

TEST_F(KubernetesTest, PodsComeTerminateAndAreReplacedUnderAReplay) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  PutPod(0, "uid-1");
  PutPod(1, "uid-2");
  ASSERT_NO_FATAL_FAILURE(Start());
  const ReplicaList first = List();
  EXPECT_EQ(first.replicas.size(), 2u) << "ready before its nodes were there: " << ToString(first);
  EXPECT_FALSE(first.degraded);
  ASSERT_TRUE(AwaitHolders(2));
  EXPECT_EQ(List().membership.source, "kubernetes prod/cairn");
  StagedReplay replay(SmallBlocks(), Target(), Rounds(5));
  RunUntil(&replay, kPart);

  // One more comes, and is not ready at first.
  PutPod(2, "uid-3", /*ready=*/false);
  ASSERT_TRUE(AwaitHolders(3));
  EXPECT_EQ(ReplicaOf(List(), "node-3").drain_state, v1::DRAIN_STATE_DRAINING);
  RunUntil(&replay, 2 * kPart);
  EXPECT_EQ(TakenBy("node-3", replay.OutcomesSince(kPart)), 0u) << "it is not ready";
  PutPod(2, "uid-3");
  ASSERT_TRUE(AwaitList([](const ReplicaList& list) {
    return ReplicaOf(list, "node-3").drain_state == v1::DRAIN_STATE_SERVING;
  }));

  // One is to terminate. It still answers, and holds a third of all.
  const absl::Time told_at = absl::Now();
  PutPod(0, "uid-1", true, /*terminating=*/true);
  ASSERT_TRUE(AwaitList([](const ReplicaList& list) {
    return ReplicaOf(list, "node-1").drain_state == v1::DRAIN_STATE_DRAINING;
  }));
  std::cout << "held back after " << absl::Now() - told_at << "\n";
  EXPECT_LT(absl::Now() - told_at, kDrainBound);
  RunUntil(&replay, 3 * kPart);
  const std::vector<WorkOutcome> drained = replay.OutcomesSince(2 * kPart);
  EXPECT_EQ(TakenBy("node-1", drained), 0u);
  EXPECT_GT(TakenBy("node-3", drained), 0u) << "it is ready";

  // It ends, and its slice goes.
  EXPECT_EQ(node(0).Terminate(kSoon), 0);
  api_->Delete("slice-0");
  ASSERT_TRUE(AwaitHolders(2));
  EXPECT_EQ(ReplicaOf(List(), "node-1").state, v1::HOLDER_STATE_OUT);
  RunUntil(&replay, 4 * kPart);
  const std::vector<WorkOutcome> gone = replay.OutcomesSince(3 * kPart);
  EXPECT_EQ(TakenBy("node-1", gone), 0u);
  for (const WorkOutcome& outcome : gone) EXPECT_EQ(outcome.fallbacks, 0u);
  ExpectNothingLost(&replay);
}

TEST_F(KubernetesTest, AnAddressThatAnotherPodGotIsNotTakenForTheOldOne) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(2));
  PutPod(0, "uid-1");
  PutPod(1, "uid-2");
  ASSERT_NO_FATAL_FAILURE(Start());
  StagedReplay replay(SmallBlocks(), Target(), Rounds(3));
  RunUntil(&replay, kPart);
  ASSERT_GT(ReplicaOf(List(), "node-1").blocks, 0u);

  // Another node and worker at the same address, before the API server says so.
  node(0).Kill9();
  const absl::StatusOr<std::unique_ptr<ServerProcess>> other = ServerProcess::Start(
      {.program = absl::StrCat(CAIRN_BIN_DIR, "/cairn-node"),
       .flags = {"--node-id=node-9", "--worker-address=worker-9", "--host-memory=64MiB",
                 "--memory-limit=1GiB", absl::StrCat("--listen=", node(0).address())}});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(AwaitList([](const ReplicaList& list) {
    return AreExact(list, 2) &&
           std::any_of(list.replicas.begin(), list.replicas.end(),
                       [](auto& r) { return r.node_id == "node-9" && r.blocks == 0; });
  }));
  const auto has_worker = [this](const std::string& worker) {
    const ReplicaList list = List();
    return std::any_of(list.replicas.begin(), list.replicas.end(),
                       [&worker](auto& replica) { return replica.worker_address == worker; });
  };
  EXPECT_FALSE(has_worker("worker-1"));
  RunUntil(&replay, 2 * kPart);
  EXPECT_EQ(TakenBy("node-1", replay.OutcomesSince(kPart)), 0u);

  // And once it does, the feed is opened anew for the new pod, with what that has by now.
  PutPod(0, "uid-9");
  ASSERT_TRUE(AwaitList([this](const ReplicaList& list) {
    return absl::StrContains(router().Log(), "is no longer listed") && AreExact(list, 2);
  }));
  EXPECT_TRUE(has_worker("worker-9"));
  EXPECT_GT(ReplicaOf(List(), "node-9").blocks, 0u);
  ExpectNothingLost(&replay);
}

TEST_F(KubernetesTest, WithoutItsApiServerTheRouterGoesOnAndCatchesUp) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  PutPod(0, "uid-1");
  PutPod(1, "uid-2");
  ASSERT_NO_FATAL_FAILURE(Start());
  StagedReplay replay(SmallBlocks(), Target(), Rounds(2));
  RunUntil(&replay, kPart);

  api_->SetToken("rotated");
  api_->HangUp();
  ASSERT_TRUE(AwaitList([](const ReplicaList& list) {
    return absl::StrContains(list.membership.error, "answered 401");
  }));
  node(0).Kill9();
  api_->Delete("slice-0");
  PutPod(2, "uid-3");
  api_->Compact();
  RunUntil(&replay, kPart + kPart / 2);
  EXPECT_EQ(List().holders.size(), 2u) << "the last list stands";

  ReplaceFile(folder_ + "/token", "rotated");
  ASSERT_TRUE(AwaitHolders(2));
  EXPECT_EQ(List().membership.error, "");
  EXPECT_EQ(ReplicaOf(List(), "node-3").state, v1::HOLDER_STATE_EXACT);
  EXPECT_GT(api_->seen().gone, 0);
  ExpectNothingLost(&replay);
}

}  // namespace
}  // namespace cairn::testing
