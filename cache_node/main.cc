// cairn-node: one cache node of a fleet.

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cache_node/service/node.h"
#include "cache_node/service/node_flags.h"
#include "common/server/allocator.h"
#include "common/server/exit_deadline.h"
#include "common/server/line_log.h"
#include "common/server/program.h"
#include "common/server/shutdown_signal.h"
#include "common/server/thread_priority.h"

namespace {

// Beyond the grace of the drain: for what cannot be interrupted, as a write to disk.
constexpr absl::Duration kStopWithin = absl::Seconds(10);

}  // namespace

int main(int argc, char** argv) {
  using cairn::node::Node;
  cairn::TuneAllocator();
  cairn::TakeShortTurns();
  // A file at the limit of the process's file sizes is a full disk, and not the node's end.
  std::signal(SIGXFSZ, SIG_IGN);
  const cairn::ProgramInfo info{.name = "cairn-node",
                                .summary = "holds KV blocks of LLM prefixes and hands them out",
                                .version = "1"};
  const std::optional<int> exit = cairn::StartProgram(
      info, argc, argv, [] { return cairn::node::ConfigFromFlags().Validate(); });
  if (exit.has_value()) return *exit;

  cairn::ShutdownSignal shutdown;
  const cairn::node::NodeConfig config = cairn::node::ConfigFromFlags();
  absl::StatusOr<std::unique_ptr<Node>> node =
      Node::Start(config, nullptr, cairn::StderrLog(info.name));
  if (!node.ok()) {
    std::fprintf(stderr, "cairn-node: %s\n", std::string(node.status().message()).c_str());
    return cairn::kExitFailure;
  }
  std::fprintf(stderr, "%s\ncairn-node %s: serving on %s\n", config.Memory().Table().c_str(),
               config.node_id.c_str(), absl::StrJoin((*node)->addresses(), ", ").c_str());
  shutdown.Wait();
  std::fprintf(stderr, "cairn-node %s: draining\n", config.node_id.c_str());
  const cairn::ExitDeadline deadline(
      config.drain_grace + kStopWithin,
      "cairn-node: leaves without waiting any longer for what hangs, such as a disk",
      cairn::kExitOk);
  (*node)->Drain();
  // Before the deadline goes.
  *node = nullptr;
  return cairn::kExitOk;
}
