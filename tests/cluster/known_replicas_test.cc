// Prompts that nobody holds: a worker that gets no answer from the router must send them where the
// router would have, or what it stores is not found later.
#include <set>

#include "client/cpp/rendezvous.h"
#include "client/replay/replay_cluster.h"
#include "tests/cluster/cluster_fixture.h"

namespace cairn::testing {
namespace {

constexpr uint64_t kPrompts = 60;

class KnownReplicasTest : public ClusterTest {};

TEST_F(KnownReplicasTest, ANewPromptHasTheSamePlaceWithAndWithoutARouter) {
  ASSERT_NO_FATAL_FAILURE(AddNodes(3));
  ASSERT_NO_FATAL_FAILURE(StartRouter(NodeAddresses()));
  const NamespaceHandle name_space = SmallBlocksNamespace();
  StoppableWait wait;
  const absl::StatusOr<replay::ReplayCluster> known =
      replay::PrepareRoutedCluster(name_space, &router_client(), Target().nodes, &wait);
  ASSERT_TRUE(known.ok()) << known.status();
  std::set<std::string> chosen;
  for (const replay::TraceRequest& request : Generate(1, kPrompts)) {
    const Prompt prompt = KeysOf(request);
    const absl::StatusOr<RouteAnswer> answer =
        router_client().Route(name_space, prompt, {.prompt_tokens = request.input_tokens()});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->replicas[0].reason, v1::ROUTE_REASON_RENDEZVOUS);
    EXPECT_EQ(answer->replicas[0].worker_address,
              OrderByRendezvous(prompt.keys(), known->replicas)[0].worker_address);
    chosen.insert(answer->replicas[0].worker_address);
    // Nothing was computed, so nothing is about to be there, and nobody is busy.
    ASSERT_TRUE(router_client().ReportOutcome({.booking = answer->booking}).ok());
  }
  EXPECT_EQ(chosen.size(), 3u) << "too few prompts to tell";
}

}  // namespace
}  // namespace cairn::testing
