// Blocks of 4 KiB, 32 a call, from sixteen callers at once, four to a client: each round puts
// 16,384 new blocks, gets them all, and removes them untimed. A put is Reserve, Write and Commit.
// There is no floor: the figures are rates.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/datapath/bench_blocks.h"
#include "tests/bench/datapath/bench_node.h"
#include "tests/bench/datapath/figures.h"
#include "tests/bench/datapath/rank_threads.h"
#include "tests/bench/datapath/turns.h"

namespace cairn::bench {
namespace {

constexpr size_t kClients = 4;
constexpr size_t kCallers = 16;
constexpr size_t kBlocksPerCall = 32;
constexpr size_t kCallsPerCaller = 32;
constexpr int kRounds = 7;
constexpr double kBlocksPerRound = kCallers * kBlocksPerCall * kCallsPerCaller;

using Prompts = std::vector<std::unique_ptr<BenchPrompt>>;

class SmallBlocks {
 public:
  explicit SmallBlocks(std::vector<std::unique_ptr<BenchClient>> clients)
      : clients_(std::move(clients)),
        threads_(kCallers),
        prompts_(kCallers),
        bytes_(kCallers, MakeBytes(kBlocksPerCall * 4096)) {}

  absl::Status Prepare() {
    absl::StatusOr<NamespaceHandle> handle = RegisterLayout(**clients_[0], FourKibibyteBlocks());
    if (!handle.ok()) return handle.status();
    name_space_ = std::make_unique<NamespaceHandle>(*std::move(handle));
    return absl::OkStatus();
  }

  absl::StatusOr<double> PutSeconds() {
    if (absl::Status removed = RemoveAll(); !removed.ok()) return removed;
    for (Prompts& prompts : prompts_) {
      prompts.clear();
      for (size_t i = 0; i < kCallsPerCaller; ++i) {
        prompts.push_back(
            std::make_unique<BenchPrompt>(**clients_[0], *name_space_, number_++, kBlocksPerCall));
      }
    }
    return SecondsOf([this] {
      return ForEachPrompt([this](size_t caller, const BenchPrompt& prompt) {
        return PutAll(**clients_[caller % kClients], *name_space_, prompt.prompt(), bytes_[caller]);
      });
    });
  }

  absl::StatusOr<double> GetSeconds() {
    return SecondsOf([this] {
      return ForEachPrompt([this](size_t caller, const BenchPrompt& prompt) {
        return GetAll(**clients_[caller % kClients], *name_space_, prompt.keys(), {},
                      absl::MakeSpan(bytes_[caller]));
      });
    });
  }

 private:
  template <typename Work>
  absl::Status ForEachPrompt(const Work& work) {
    return threads_.Run([&](size_t caller) -> absl::Status {
      for (const auto& prompt : prompts_[caller]) {
        if (absl::Status status = work(caller, *prompt); !status.ok()) return status;
      }
      return absl::OkStatus();
    });
  }

  absl::Status RemoveAll() {
    return ForEachPrompt([this](size_t caller, const BenchPrompt& prompt) {
      return Remove(**clients_[caller % kClients], *name_space_, prompt.keys());
    });
  }

  std::vector<std::unique_ptr<BenchClient>> clients_;
  RankThreads threads_;
  std::unique_ptr<NamespaceHandle> name_space_;
  std::vector<Prompts> prompts_;  // By caller.
  std::vector<std::vector<uint8_t>> bytes_;
  uint32_t number_ = 0;
};

}  // namespace

absl::Status AddSmallBlocks(JsonReport* report) {
  const absl::StatusOr<std::unique_ptr<BenchNode>> node = BenchNode::Start({.pool_mib = 512});
  if (!node.ok()) return node.status();
  std::vector<std::unique_ptr<BenchClient>> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back((*node)->Connect(Transport::kTcp));
  SmallBlocks blocks(std::move(clients));
  if (absl::Status status = blocks.Prepare(); !status.ok()) return status;
  const absl::StatusOr<double> put = MedianOf([&] { return blocks.PutSeconds(); }, kRounds);
  if (!put.ok()) return put.status();
  const absl::StatusOr<double> get = MedianOf([&] { return blocks.GetSeconds(); }, kRounds);
  if (!get.ok()) return get.status();
  report->Add("small_put_blocks_per_second", kBlocksPerRound / *put);
  report->Add("small_get_blocks_per_second", kBlocksPerRound / *get);
  return absl::OkStatus();
}

}  // namespace cairn::bench
