// Four ranks of one worker at once, each with connections of its own: 128 parts of 256 KiB a rank,
// from and to memory of its own, against as many plain sockets that move and hash the same bytes.
// A put is one reservation, which the ranks share, as an engine's do; a call ends with its last
// rank.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/datapath/rank_threads.h"
#include "tests/bench/datapath/turns.h"
#include "tests/bench/datapath/wire_floor.h"

namespace cairn::bench {
namespace {

constexpr size_t kRanks = 4;
constexpr size_t kBlocks = 128;
constexpr int kRounds = 15;
constexpr uint32_t kPartBytes = 256 << 10;
constexpr uint32_t kSegmentBytes = 16 << 10;
constexpr uint64_t kRankBytes = kBlocks * uint64_t{kPartBytes};

struct Rank {
  std::unique_ptr<BenchClient> client;
  std::unique_ptr<WireFloor::Connection> floor;
  std::vector<uint8_t> bytes;
};

class RankParts {
 public:
  explicit RankParts(std::vector<Rank> ranks) : ranks_(std::move(ranks)), threads_(kRanks) {}

  absl::Status Prepare() {
    absl::StatusOr<NamespaceHandle> handle = RegisterLayout(leader(), QuarterMebibyteParts());
    if (!handle.ok()) return handle.status();
    name_space_ = std::make_unique<NamespaceHandle>(*std::move(handle));
    prompt_ = std::make_unique<BenchPrompt>(leader(), *name_space_, 0, kBlocks);
    return Put(prompt_->prompt());
  }

  absl::StatusOr<Turns> Gets() {
    return MeasureTurns([this] { return SecondsOf([this] { return Get(); }); },
                        [this] {
                          return SecondsOf([this] {
                            return threads_.Run([this](size_t rank) {
                              return ranks_[rank].floor->Get(rank * kRankBytes,
                                                             absl::MakeSpan(ranks_[rank].bytes),
                                                             kSegmentBytes);
                            });
                          });
                        },
                        kRounds);
  }

  absl::StatusOr<Turns> Puts() {
    uint32_t number = 1;
    return MeasureTurns(
        [&]() -> absl::StatusOr<double> {
          const BenchPrompt fresh(leader(), *name_space_, number++, kBlocks);
          const absl::StatusOr<double> seconds = SecondsOf([&] { return Put(fresh.prompt()); });
          if (!seconds.ok()) return seconds;
          absl::Status removed = Remove(leader(), *name_space_, fresh.keys());
          if (!removed.ok()) return removed;
          return seconds;
        },
        [this] {
          return SecondsOf([this] {
            return threads_.Run([this](size_t rank) {
              return ranks_[rank].floor->Put(rank * kRankBytes, ranks_[rank].bytes, kSegmentBytes);
            });
          });
        },
        kRounds);
  }

 private:
  CacheNodeClient& leader() { return **ranks_[0].client; }

  absl::Status Get() {
    return threads_.Run([this](size_t rank) {
      return GetAll(**ranks_[rank].client, *name_space_, prompt_->keys(),
                    {{.group = 0, .slice = static_cast<uint32_t>(rank)}},
                    absl::MakeSpan(ranks_[rank].bytes));
    });
  }

  absl::Status Put(const Prompt& prompt) {
    absl::StatusOr<WriteSession> reserved = leader().Reserve(*name_space_, prompt, 0, kBlocks, {});
    if (!reserved.ok()) return reserved.status();
    if (reserved->reserved().size() != kBlocks) return absl::InternalError("not all is reserved");
    const WriteSession::Ticket ticket = reserved->ticket();
    absl::Status status = threads_.Run([&](size_t rank) { return PutSlice(rank, ticket); });
    if (!status.ok()) return status;
    const absl::StatusOr<CommitResult> committed = reserved->Commit();
    if (!committed.ok()) return committed.status();
    return committed->complete ? absl::OkStatus() : absl::InternalError("a put is not complete");
  }

  absl::Status PutSlice(size_t rank, const WriteSession::Ticket& ticket) {
    const PayloadMap& map = name_space_->payload_map();
    WriteSession session = (*ranks_[rank].client)->AttachWrite(*name_space_, ticket);
    const auto source = [&](size_t block, const SegmentId& id) {
      return absl::MakeConstSpan(ranks_[rank].bytes)
          .subspan(block * kPartBytes + id.layer * kSegmentBytes,
                   map.SegmentBytesAt(*map.FindSegment(id)));
    };
    const PartLayers part{.group = 0, .slice = static_cast<uint32_t>(rank)};
    const absl::StatusOr<WriteResult> written =
        session.Write(ticket.reserved, {&part, 1}, source, {.wait_when_exhausted = true});
    if (!written.ok()) return written.status();
    if (!written->AllWritten()) return written->errors.front().status;
    return session.Commit().status();
  }

  std::vector<Rank> ranks_;
  RankThreads threads_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::unique_ptr<BenchPrompt> prompt_;
};

void AddTurns(const std::string& name, const Turns& turns, JsonReport* report) {
  const double megabytes = static_cast<double>(kRanks * kRankBytes) / 1e6;
  report->Add(absl::StrCat(name, "_over_tcp"), turns.ratio());
  report->Add(absl::StrCat(name, "_mb_per_second"), megabytes / turns.product_seconds);
  report->Add(absl::StrCat(name, "_floor_mb_per_second"), megabytes / turns.floor_seconds);
}

}  // namespace

absl::Status AddRankParts(JsonReport* report) {
  const absl::StatusOr<std::string> programs = ProgramFolder();
  if (!programs.ok()) return programs.status();
  const absl::StatusOr<std::unique_ptr<WireFloor>> floor =
      WireFloor::Start(*programs, WireFloor::Transport::kTcp, kRanks * kRankBytes);
  if (!floor.ok()) return floor.status();
  const absl::StatusOr<std::unique_ptr<BenchNode>> node = BenchNode::Start({.pool_mib = 512});
  if (!node.ok()) return node.status();
  std::vector<Rank> ranks;
  for (size_t i = 0; i < kRanks; ++i) {
    absl::StatusOr<std::unique_ptr<WireFloor::Connection>> connection = (*floor)->Connect();
    if (!connection.ok()) return connection.status();
    ranks.push_back({.client = (*node)->Connect(Transport::kTcp),
                     .floor = *std::move(connection),
                     .bytes = MakeBytes(kRankBytes)});
  }
  RankParts parts(std::move(ranks));
  if (absl::Status status = parts.Prepare(); !status.ok()) return status;
  const absl::StatusOr<Turns> gets = parts.Gets();
  if (!gets.ok()) return gets.status();
  AddTurns("get_256k", *gets, report);
  const absl::StatusOr<Turns> puts = parts.Puts();
  if (!puts.ok()) return puts.status();
  AddTurns("put_256k", *puts, report);
  return absl::OkStatus();
}

}  // namespace cairn::bench
