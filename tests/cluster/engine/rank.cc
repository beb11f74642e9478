// cairn_engine_rank: one rank of a fake engine, as a process.
//
// It does what it is told on stdin, a line each, and says on stdout what came of it:
//
//   load LEASE NUMBER BLOCKS        "layer STEPS USABLE" after each step, then
//                                   "loaded USABLE WRONG STATUS"; reader --rank of the lease
//   store TOKEN NUMBER BLOCKS FIRST "stored COMPLETE STATUS"; blocks FIRST to BLOCKS are reserved
//   hold                            the next transfer says "holding" after its first layer and
//                                   stands still
//
// Like an engine's worker it never waits for the node: one loop over stdin and the transfers.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/async/async_transfers.h"
#include "client/cpp/synthetic_payload.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hex.h"
#include "tests/cluster/engine/engine_model.h"
#include "tests/cluster/test_client.h"

ABSL_FLAG(std::string, node, "", "Address of the node.");
ABSL_FLAG(uint32_t, rank, 0, "Its number.");

namespace cairn::testing {
namespace {

template <typename Id>
Id IdOf(const std::string& hex) {
  const absl::StatusOr<std::string> bytes = FromHex(hex);
  CAIRN_CHECK_OK(bytes.status());
  const auto id = Id::FromBytes(*bytes);
  CAIRN_CHECK_MSG(id.has_value(), hex);
  return *id;
}

class Rank {
 public:
  Rank()
      : rank_(absl::GetFlag(FLAGS_rank)),
        client_(absl::GetFlag(FLAGS_node)),
        name_space_(RegisterEngine(*client_)),
        transfers_(&*client_, &clock_, {.threads = 2}) {}

  int Run() {
    std::cout << "ready" << std::endl;
    pollfd waited[2] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                        {.fd = transfers_.event_fd(), .events = POLLIN, .revents = 0}};
    while (poll(waited, 2, -1) > 0) {
      if (waited[1].revents != 0) HearTransfers();
      if (waited[0].revents != 0 && !HearScheduler()) return 0;
    }
    return 1;
  }

 private:
  // False at the end of stdin.
  bool HearScheduler() {
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count <= 0) return false;
    heard_.append(bytes, static_cast<size_t>(count));
    for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
      Obey(heard_.substr(0, end));
      heard_.erase(0, end + 1);
    }
    return true;
  }

  void Obey(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] == "hold") {
      hold_ = true;
      return;
    }
    uint32_t number = 0;
    uint32_t blocks = 0;
    CAIRN_CHECK(words.size() >= 4 && absl::SimpleAtoi(words[2], &number) &&
                absl::SimpleAtoi(words[3], &blocks));
    prompt_ = std::make_unique<EnginePrompt>(*client_, name_space_, number, blocks);
    bytes_.assign(blocks * name_space_.block_bytes(), 0xa5);
    if (words[0] == "load") return Load(words);
    CAIRN_CHECK(words[0] == "store" && words.size() == 5);
    Store(words);
  }

  // On a thread of the transfers.
  void StandStillWhenTold(const SegmentId& id) {
    if (id.layer == 0 || !hold_.exchange(false)) return;
    std::cout << "holding" << std::endl;
    never_.WaitForNotification();
  }

  void Load(const std::vector<std::string>& words) {
    const ContiguousBlocks blocks(&name_space_.payload_map(), absl::MakeSpan(bytes_));
    LoadTransfer load{.name_space = name_space_,
                      .keys = prompt_->keys(),
                      .place =
                          [this, blocks](size_t block, const SegmentId& id) {
                            StandStillWhenTold(id);
                            return blocks(block, id);
                          },
                      .steps = LoadStepsOf(name_space_, rank_),
                      .lease = client_->JoinLease(IdOf<LeaseId>(words[1]), rank_, 1)};
    CAIRN_CHECK_OK(transfers_.Submit(std::move(load)).status());
  }

  void Store(const std::vector<std::string>& words) {
    uint32_t first = 0;
    CAIRN_CHECK(absl::SimpleAtoi(words[4], &first));
    WriteSession::Ticket ticket{.token = IdOf<TokenId>(words[1]), .keys = {}, .reserved = {}};
    ticket.keys.assign(prompt_->keys().begin() + first, prompt_->keys().end());
    for (uint32_t i = 0; i < ticket.keys.size(); ++i) {
      ticket.reserved.push_back(i);
      FillSyntheticBlock(
          name_space_.payload_map(), ticket.keys[i],
          absl::MakeSpan(bytes_).subspan(i * name_space_.block_bytes(), name_space_.block_bytes()));
    }
    const ContiguousBlocks blocks(&name_space_.payload_map(), absl::MakeSpan(bytes_));
    StoreTransfer store{.session = client_->AttachWrite(name_space_, ticket),
                        .source =
                            [this, blocks](size_t block, const SegmentId& id) {
                              StandStillWhenTold(id);
                              return blocks(block, id);
                            },
                        .steps = StoreStepsOf(name_space_, rank_),
                        .steps_ready = UINT32_MAX,
                        .options = {}};
    CAIRN_CHECK_OK(transfers_.Submit(std::move(store)).status());
  }

  void HearTransfers() {
    for (const TransferEvent& event : transfers_.Poll(64)) {
      if (!event.result.has_value()) {
        std::cout << absl::StrCat("layer ", event.steps_done, " ", event.usable) << std::endl;
      } else if (const auto* load = std::get_if<LoadResult>(&*event.result)) {
        std::cout << absl::StrCat("loaded ", load->usable_prefix, " ",
                                  CountWrong(load->usable_prefix), " ",
                                  absl::StatusCodeToString(load->status.code()))
                  << std::endl;
      } else {
        const auto& store = std::get<StoreResult>(*event.result);
        std::cout << absl::StrCat("stored ", store.complete && store.errors_total == 0, " ",
                                  absl::StatusCodeToString(store.status.code()))
                  << std::endl;
      }
    }
  }

  // Segments of this rank's that it would compute with and that are not the prompt's.
  uint64_t CountWrong(size_t usable) const {
    const PayloadMap& map = name_space_.payload_map();
    const ContiguousBlocks blocks(
        &map, absl::MakeSpan(const_cast<uint8_t*>(bytes_.data()), bytes_.size()));
    uint64_t wrong = 0;
    for (size_t block = 0; block < usable; ++block) {
      for (size_t i = 0; i < map.segment_count(); ++i) {
        const SegmentId id = map.SegmentAt(i);
        const bool beyond_window = id.group == 1 && block + kEngineWindowBlocks < usable;
        if (id.slice != rank_ || beyond_window) continue;
        if (!IsSyntheticSegment(map, prompt_->keys()[block], id, blocks(block, id))) ++wrong;
      }
    }
    return wrong;
  }

  const uint32_t rank_;
  SystemClock clock_;
  TestClient client_;
  const NamespaceHandle name_space_;
  std::string heard_;
  std::atomic<bool> hold_ = false;
  absl::Notification never_;
  std::unique_ptr<EnginePrompt> prompt_;
  std::vector<uint8_t> bytes_;
  AsyncTransfers transfers_;  // Last: its threads use the others.
};

}  // namespace
}  // namespace cairn::testing

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return cairn::testing::Rank().Run();
}
