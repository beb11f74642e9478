// One rank moves 16 parts of 2 MiB a call, against a plain socket that moves and hashes the same
// bytes; from and to 256 MiB on either side, so that nothing stays in a cache.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/datapath/turns.h"
#include "tests/bench/datapath/wire_floor.h"

namespace cairn::bench {
namespace {

constexpr size_t kPartsPerCall = 16;
constexpr size_t kCalls = 8;  // In the working set.
constexpr int kRounds = 15;
// Of the floor, used in turns: how fast one is depends on where the kernel puts its two ends.
constexpr size_t kFloorConnections = 5;
constexpr uint32_t kSegmentBytes = 64 << 10;
constexpr uint64_t kCallBytes = kPartsPerCall * (uint64_t{2} << 20);

class LargeParts {
 public:
  using Floor = std::vector<std::unique_ptr<WireFloor::Connection>>;

  LargeParts(std::unique_ptr<BenchClient> client, Floor floor)
      : client_(std::move(client)),
        floor_(std::move(floor)),
        bytes_(MakeBytes(kCalls * kCallBytes)) {}

  absl::Status Prepare() {
    absl::StatusOr<NamespaceHandle> handle = RegisterLayout(**client_, TwoMebibyteParts());
    if (!handle.ok()) return handle.status();
    name_space_ = std::make_unique<NamespaceHandle>(*std::move(handle));
    for (uint32_t call = 0; call < kCalls; ++call) {
      prompts_.push_back(
          std::make_unique<BenchPrompt>(**client_, *name_space_, call, kPartsPerCall));
      absl::Status put = PutAll(**client_, *name_space_, prompts_.back()->prompt(), PlaceOf(call));
      if (!put.ok()) return put;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Turns> Gets() {
    size_t turn = 0;
    return MeasureTurns(
        [&] {
          const size_t call = turn++ % kCalls;
          return SecondsOf([&] {
            return GetAll(**client_, *name_space_, prompts_[call]->keys(), {}, PlaceOf(call));
          });
        },
        [&] { return FloorGet(turn); }, kRounds);
  }

  // `named`: from memory that stays readable, so that nothing is copied.
  absl::StatusOr<Turns> Puts(bool named) {
    size_t turn = 0;
    return MeasureTurns(
        [&]() -> absl::StatusOr<double> {
          const size_t call = turn++ % kCalls;
          const BenchPrompt fresh(**client_, *name_space_, static_cast<uint32_t>(kCalls + turn),
                                  kPartsPerCall);
          const absl::StatusOr<double> seconds = SecondsOf([&] {
            return PutAll(**client_, *name_space_, fresh.prompt(), PlaceOf(call),
                          {.source_stays_readable = named});
          });
          if (!seconds.ok()) return seconds;
          absl::Status removed = Remove(**client_, *name_space_, fresh.keys());
          if (!removed.ok()) return removed;
          return seconds;
        },
        [&] { return FloorPut(turn); }, kRounds);
  }

  absl::StatusOr<double> FloorGet(size_t turn) {
    const size_t call = (turn + kCalls / 2) % kCalls;
    return SecondsOf([&] {
      return floor_[turn % floor_.size()]->Get(call * kCallBytes, PlaceOf(call), kSegmentBytes);
    });
  }

  absl::StatusOr<double> FloorPut(size_t turn) {
    const size_t call = (turn + kCalls / 2) % kCalls;
    return SecondsOf([&] {
      return floor_[turn % floor_.size()]->Put(call * kCallBytes, PlaceOf(call), kSegmentBytes);
    });
  }

 private:
  absl::Span<uint8_t> PlaceOf(size_t call) {
    return absl::MakeSpan(bytes_).subspan(call * kCallBytes, kCallBytes);
  }

  const std::unique_ptr<BenchClient> client_;
  const Floor floor_;
  std::vector<uint8_t> bytes_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::vector<std::unique_ptr<BenchPrompt>> prompts_;
};

void AddTurns(const std::string& name, const std::string& what, const Turns& turns,
              JsonReport* report) {
  const double megabytes = static_cast<double>(kCallBytes) / 1e6;
  report->Add(absl::StrCat(name, "_", what), turns.ratio());
  report->Add(absl::StrCat(name, "_mb_per_second"), megabytes / turns.product_seconds);
  report->Add(absl::StrCat(name, "_floor_mb_per_second"), megabytes / turns.floor_seconds);
}

absl::Status Measure(Transport transport, WireFloor::Transport floor_transport,
                     const std::string& suffix, const std::string& what, JsonReport* report) {
  const absl::StatusOr<std::string> programs = ProgramFolder();
  if (!programs.ok()) return programs.status();
  const absl::StatusOr<std::unique_ptr<WireFloor>> floor =
      WireFloor::Start(*programs, floor_transport, kCalls * kCallBytes);
  if (!floor.ok()) return floor.status();
  LargeParts::Floor connections;
  for (size_t i = 0; i < kFloorConnections; ++i) {
    absl::StatusOr<std::unique_ptr<WireFloor::Connection>> connection = (*floor)->Connect();
    if (!connection.ok()) return connection.status();
    connections.push_back(*std::move(connection));
  }
  const absl::StatusOr<std::unique_ptr<BenchNode>> node =
      BenchNode::Start({.pool_mib = 512, .tls = transport == Transport::kTls});
  if (!node.ok()) return node.status();
  LargeParts parts((*node)->Connect(transport), std::move(connections));
  if (absl::Status status = parts.Prepare(); !status.ok()) return status;
  const absl::StatusOr<Turns> gets = parts.Gets();
  if (!gets.ok()) return gets.status();
  AddTurns(absl::StrCat("get", suffix), what, *gets, report);
  for (const bool named : {false, true}) {
    const absl::StatusOr<Turns> puts = parts.Puts(named);
    if (!puts.ok()) return puts.status();
    AddTurns(absl::StrCat(named ? "put_uncopied" : "put", suffix), what, *puts, report);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddLargeParts(JsonReport* report) {
  absl::Status status =
      Measure(Transport::kTcp, WireFloor::Transport::kTcp, "", "over_tcp", report);
  if (status.ok()) {
    status =
        Measure(Transport::kTcp, WireFloor::Transport::kTcpCubic, "_cubic", "over_tcp", report);
  }
  if (status.ok()) {
    status = Measure(Transport::kUnix, WireFloor::Transport::kUnix, "_uds", "over_uds", report);
  }
  if (status.ok()) {
    status = Measure(Transport::kTls, WireFloor::Transport::kTcp, "_tls", "over_tcp", report);
  }
  return status;
}

}  // namespace cairn::bench
