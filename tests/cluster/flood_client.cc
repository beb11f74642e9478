// cairn_flood_client: many FloodWriters in one process, a thread each, begun together.
//
// Says "connected N" when all connections stand, starts on a line from stdin, and ends with one
// line: "done LANDED REFUSED UNKNOWN FAILED REFUSALS FAILURE".
#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/time/clock.h"
#include "client/cpp/retry_wait.h"
#include "common/base/check.h"
#include "tests/cluster/flood_writer.h"
#include "tests/cluster/numbered_prompt.h"

ABSL_FLAG(std::string, node, "", "Address of the node.");
ABSL_FLAG(uint32_t, first, 0, "Number of the first writer.");
ABSL_FLAG(uint32_t, writers, 1, "How many.");
ABSL_FLAG(uint32_t, budget_ms, 10000, "A writer that was refused tries again for so long.");
ABSL_FLAG(uint32_t, slow_percent, 0, "Of 100 writers, such as wait between frames.");
ABSL_FLAG(bool, blind, false, "Send under tokens that nobody gave out.");

namespace cairn::testing {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(60);
constexpr absl::Duration kSlowWait = absl::Milliseconds(200);

struct Tally {
  uint64_t landed = 0;
  uint64_t refused = 0;
  uint64_t unknown = 0;
  uint64_t failed = 0;
  uint64_t refusals = 0;
  std::string failure = "-";

  void Add(FloodWriter::Outcome outcome, const FloodWriter& writer) {
    landed += outcome == FloodWriter::Outcome::kLanded ? 1 : 0;
    refused += outcome == FloodWriter::Outcome::kRefused ? 1 : 0;
    unknown += outcome == FloodWriter::Outcome::kUnknown ? 1 : 0;
    failed += outcome == FloodWriter::Outcome::kFailed ? 1 : 0;
    refusals += writer.refusals();
    if (outcome == FloodWriter::Outcome::kFailed) failure = writer.failure();
  }
};

std::vector<uint8_t> MakePayload(size_t size) {
  std::vector<uint8_t> payload(size);
  for (size_t i = 0; i < size; ++i) payload[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  return payload;
}

// Runs `body` on a thread for each writer and waits for all.
template <typename Body>
void ForEach(std::vector<std::unique_ptr<FloodWriter>>& writers, Body body) {
  std::vector<std::thread> threads;
  for (const auto& writer : writers) threads.emplace_back([&body, &writer] { body(*writer); });
  for (std::thread& thread : threads) thread.join();
}

int Run() {
  const absl::StatusOr<NamespaceHandle> name_space =
      NamespaceHandle::Make("flood", NamespaceOf(LargeBlocks()));
  CAIRN_CHECK_OK(name_space.status());
  // gRPC may hold borrowed bytes until the very end of the process.
  static const auto* const payload =
      new std::vector<uint8_t>(MakePayload(name_space->block_bytes()));
  StoppableWait wait;
  std::vector<std::unique_ptr<FloodWriter>> writers;
  for (uint32_t i = 0; i < absl::GetFlag(FLAGS_writers); ++i) {
    writers.push_back(std::make_unique<FloodWriter>(
        absl::GetFlag(FLAGS_node), absl::GetFlag(FLAGS_first) + i, &*name_space, *payload, &wait));
    if (i % 100 < absl::GetFlag(FLAGS_slow_percent)) writers.back()->WaitBetweenFrames(kSlowWait);
  }
  ForEach(writers, [](FloodWriter& writer) { CAIRN_CHECK(writer.Connect(kConnectTimeout)); });
  std::cout << "connected " << writers.size() << std::endl;
  std::string go;
  if (!std::getline(std::cin, go)) return 0;

  const absl::Time deadline = absl::Now() + absl::Milliseconds(absl::GetFlag(FLAGS_budget_ms));
  const bool blind = absl::GetFlag(FLAGS_blind);
  std::mutex mutex;
  Tally tally;
  ForEach(writers, [&](FloodWriter& writer) {
    const FloodWriter::Outcome outcome = blind ? writer.Blind(deadline) : writer.Put(deadline);
    const std::lock_guard<std::mutex> lock(mutex);
    tally.Add(outcome, writer);
  });
  std::replace(tally.failure.begin(), tally.failure.end(), '\n', ' ');
  std::cout << "done " << tally.landed << " " << tally.refused << " " << tally.unknown << " "
            << tally.failed << " " << tally.refusals << " " << tally.failure << std::endl;
  return 0;
}

}  // namespace
}  // namespace cairn::testing

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return cairn::testing::Run();
}
