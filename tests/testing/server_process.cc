#include "tests/testing/server_process.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <signal.h>

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

// How often a condition of another process is looked at, where nothing can be waited for.
constexpr absl::Duration kLookInterval = absl::Milliseconds(5);
constexpr absl::Duration kHealthCallTimeout = absl::Seconds(1);
constexpr size_t kLogTailBytes = 4096;
// What a program prints before the address that it listens on.
constexpr absl::string_view kListening = ": serving on ";

std::string Tail(const std::string& log) {
  return log.size() <= kLogTailBytes ? log : log.substr(log.size() - kLogTailBytes);
}

// The address after kListening, when its line is whole.
std::optional<std::string> ListenedOn(absl::string_view log) {
  const size_t at = log.find(kListening);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = log.substr(at + kListening.size());
  if (!absl::StrContains(rest, "\n")) return std::nullopt;
  const size_t end = rest.find_first_of(" ,;\n");
  return std::string(rest.substr(0, end));
}

// grpc.health.v1.Health/Check by hand: Debian has no generated class for it.
bool SaysReady(grpc::GenericStub* stub) {
  constexpr absl::string_view kRequest = "\x0a\x09readiness";  // service = 1
  constexpr absl::string_view kServing = "\x08\x01";           // status = 1: SERVING
  const grpc::Slice slice(kRequest.data(), kRequest.size());
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kHealthCallTimeout));
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto call =
      stub->PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  grpc::Slice answer;
  if (!status.ok() || !response.DumpToSingleSlice(&answer).ok()) return false;
  return absl::string_view(reinterpret_cast<const char*>(answer.begin()), answer.size()) ==
         kServing;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Run(const std::string& program,
                                                  const std::vector<std::string>& flags,
                                                  const std::string& folder) {
  ChildProcess::Options options;
  options.command = {program};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  options.log_path = absl::StrCat(folder, "/log");
  return ChildProcess::Start(std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(const Options& options) {
  std::string folder = MakeTempFolder();
  std::vector<std::string> flags = {"--listen=127.0.0.1:0", "--insecure", "--metrics-listen="};
  flags.insert(flags.end(), options.flags.begin(), options.flags.end());
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = Run(options.program, flags, folder);
  if (!process.ok()) {
    std::filesystem::remove_all(folder);
    return process.status();
  }
  std::unique_ptr<ServerProcess> server(new ServerProcess(
      std::move(folder), *std::move(process),
      options.credentials ? options.credentials : grpc::InsecureChannelCredentials()));
  const absl::Time deadline = absl::Now() + options.ready_timeout;
  absl::Status status = server->AwaitListening(deadline);
  if (status.ok() && options.await_ready) status = server->AwaitReady(deadline);
  if (!status.ok()) return status;
  return server;
}

ServerProcess::ServerProcess(std::string folder, std::unique_ptr<ChildProcess> process,
                             std::shared_ptr<grpc::ChannelCredentials> credentials)
    : folder_(std::move(folder)),
      process_(std::move(process)),
      credentials_(std::move(credentials)) {}

ServerProcess::~ServerProcess() {
  process_->Kill9();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status ServerProcess::Ended(int exit_status) const {
  return absl::UnavailableError(
      absl::StrCat("the program ended with ", exit_status, ":\n", Tail(Log())));
}

absl::Status ServerProcess::AwaitListening(absl::Time deadline) {
  do {
    if (const std::optional<int> exit = process_->WaitExit(kLookInterval)) return Ended(*exit);
    if (const std::optional<std::string> address = ListenedOn(Log())) {
      address_ = *address;
      return absl::OkStatus();
    }
  } while (absl::Now() < deadline);
  return absl::DeadlineExceededError(
      absl::StrCat("the program did not listen in time:\n", Tail(Log())));
}

absl::Status ServerProcess::AwaitReady(absl::Time deadline) {
  while (absl::Now() < deadline) {
    if (IsReady()) return absl::OkStatus();
    if (const std::optional<int> exit = process_->WaitExit(kLookInterval)) return Ended(*exit);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the program was not ready in time:\n", Tail(Log())));
}

bool ServerProcess::IsReady() const {
  grpc::GenericStub stub(grpc::CreateChannel(address_, credentials_));
  return SaysReady(&stub);
}

std::optional<int> ServerProcess::Terminate(absl::Duration timeout) {
  process_->Signal(SIGTERM);
  return process_->WaitExit(timeout);
}

void ServerProcess::Stop() { process_->Stop(); }

void ServerProcess::Continue() { CAIRN_CHECK(process_->Signal(SIGCONT)); }

absl::StatusOr<std::unique_ptr<ServerProcess>> StartNode(ServerProcess::Options options) {
  options.flags.insert(options.flags.begin(), "--node-id=test");
  return ServerProcess::Start(options);
}

ProgramRun RunToEnd(const std::string& program, const std::vector<std::string>& flags,
                    absl::Duration timeout) {
  const std::string folder = MakeTempFolder();
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = Run(program, flags, folder);
  CAIRN_CHECK_OK(process.status());
  ProgramRun run;
  run.exit_status = (*process)->WaitExit(timeout);
  (*process)->Kill9();
  run.output = (*process)->Log();
  std::filesystem::remove_all(folder);
  return run;
}

}  // namespace cairn::testing
