// A program as small as one can be that starts and ends as ours do; tests run it as a process.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "common/server/byte_size.h"
#include "common/server/config_errors.h"
#include "common/server/program.h"
#include "common/server/shutdown_signal.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:7000", "Where it would listen.");
ABSL_FLAG(int32_t, threads, 4, "Threads, from 1 to 64.");
ABSL_FLAG(cairn::ByteSize, memory_limit, cairn::ByteSize::GiB(1), "What it may use.");
ABSL_FLAG(
    bool, hang, false,
    "Goes on after the first signal, as a shutdown that never ends would, so that only a second "
    "one ends it.");

namespace {

constexpr cairn::ProgramInfo kProgram = {
    .name = "sample", .summary = "waits for a signal.", .version = "1.2.3"};

absl::Status Validate() {
  cairn::ConfigErrors errors;
  errors.CheckListenAddress("listen", absl::GetFlag(FLAGS_listen));
  errors.CheckRange("threads", absl::GetFlag(FLAGS_threads), 1, 64);
  return errors.ToStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto exit = cairn::StartProgram(kProgram, argc, argv, Validate)) return *exit;
  cairn::ShutdownSignal shutdown;
  std::puts("running");
  std::fflush(stdout);
  shutdown.Wait();
  std::puts("stopping");
  std::fflush(stdout);
  if (absl::GetFlag(FLAGS_hang)) cairn::WakeEvent().Wait();
  return cairn::kExitOk;
}
