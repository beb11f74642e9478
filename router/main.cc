// cairn-router: sends each request to the replica that holds its longest useful prefix.

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/server/allocator.h"
#include "common/server/line_log.h"
#include "common/server/program.h"
#include "common/server/shutdown_signal.h"
#include "common/server/thread_priority.h"
#include "router/service/router.h"
#include "router/service/router_flags.h"

int main(int argc, char** argv) {
  using cairn::router::Router;
  cairn::TuneAllocator();
  cairn::TakeShortTurns();
  // A file at the limit of the process's file sizes ends the recording and not the router.
  std::signal(SIGXFSZ, SIG_IGN);
  const cairn::ProgramInfo info{.name = "cairn-router",
                                .summary = "says which replica holds the longest useful prefix",
                                .version = "1"};
  const std::optional<int> exit = cairn::StartProgram(
      info, argc, argv, [] { return cairn::router::ConfigFromFlags().Validate(); });
  if (exit.has_value()) return *exit;

  const cairn::LineLog log = cairn::StderrLog(info.name);
  cairn::ShutdownSignal shutdown;
  const cairn::router::RouterConfig config = cairn::router::ConfigFromFlags();
  const absl::StatusOr<std::unique_ptr<Router>> router = Router::Start(config, log);
  if (!router.ok()) {
    log(router.status().message());
    return cairn::kExitFailure;
  }
  std::fprintf(stderr, "%s\n", config.Memory().Table().c_str());
  log(absl::StrCat("serving on ", absl::StrJoin((*router)->addresses(), ", ")));
  shutdown.Wait();
  log("draining");
  (*router)->Drain();
  return cairn::kExitOk;
}
