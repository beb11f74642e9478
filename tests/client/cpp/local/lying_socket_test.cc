// A client beside a node whose local socket lies or says nothing: whatever comes over it, bytes are
// right, calls end in time, and the channel brings what the socket does not.
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/local/boot_id.h"
#include "common/local/local_limits.h"
#include "common/local/packet_socket.h"
#include "tests/client/cpp/client_fixture.h"

namespace cairn::testing {
namespace {

constexpr size_t kBlocks = 2;
constexpr uint64_t kPageBytes = 4096;

Descriptor Memory(uint64_t bytes) {
  Descriptor memory(memfd_create("lying", MFD_CLOEXEC));
  CAIRN_CHECK(ftruncate(memory.get(), static_cast<off_t>(bytes)) == 0);
  return memory;
}

class LyingSocketTest : public ClientTest {
 protected:
  struct Answer {
    v1::LocalAnswer message;
    std::vector<Descriptor> descriptors = {};
    std::string raw = {};  // In place of the message.
  };
  using Lie = std::function<Answer(const v1::LocalRequest&)>;

  void SetUp() override {
    name_ = absl::StrCat("@cairn-lying-socket-test-", getpid());
    absl::StatusOr<PacketSocket> listener = PacketSocket::Listen(name_, 16);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    prompt_.emplace(MakePrompt(kBlocks));
    ASSERT_TRUE(Put(*prompt_).ok());
    v1::OpenLocalResponse opened;
    opened.set_socket(name_);
    opened.set_ticket(std::string(kLocalTicketBytes, 't'));
    opened.set_boot_id(BootId());
    node_->OfferLocal(opened);
    clock_.Advance(absl::Minutes(10));  // There was none before: it is time to try again.
  }

  // A well-formed answer to a read; the lies are made of it.
  Answer Places() const {
    Answer answer;
    v1::LocalPlaces* places = answer.message.mutable_places();
    places->set_lease(std::string(16, 'l'));
    v1::LocalSegment* segment = places->add_segments();
    segment->set_id(1);
    segment->set_bytes(kBlocks * SlotBytes());
    segment->set_slot_bytes(SlotBytes());
    segment->set_slots(kBlocks);
    for (uint32_t i = 0; i < kBlocks; ++i) {
      v1::LocalPlace* place = places->add_places();
      place->set_segment(1);
      place->set_slot(i);
      for (size_t at = 0; at < handle_->payload_map().segment_count(); ++at) place->add_digests(at);
    }
    answer.descriptors.push_back(Memory(kBlocks * SlotBytes()));
    answer.descriptors.push_back(Memory(kPageBytes));
    return answer;
  }
  uint64_t SlotBytes() const {
    return (handle_->block_bytes() + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  // Serves one connection after the other while `run` does: hello is welcomed, the rest lied to.
  void Beside(const Lie& lie, const std::function<void()>& run) {
    std::atomic<bool> over{false};
    std::thread server([&] {
      while (!over) {
        const absl::StatusOr<PacketSocket> client = listener_.Accept();
        if (client.ok() && *client) {
          ServeOne(*client, lie, over);
        } else {
          std::this_thread::yield();
        }
      }
    });
    run();
    over = true;
    server.join();
  }

  void ServeOne(const PacketSocket& client, const Lie& lie, const std::atomic<bool>& over) {
    std::string buffer(kLocalPacketBytesMax, '\0');
    while (!over) {
      const auto packet = client.Receive(absl::MakeSpan(buffer), 0, absl::Milliseconds(5));
      if (absl::IsDeadlineExceeded(packet.status())) continue;
      if (!packet.ok()) return;
      v1::LocalRequest request;
      CAIRN_CHECK(
          request.ParseFromArray(packet->bytes.data(), static_cast<int>(packet->bytes.size())));
      if (request.has_end() || request.has_unmapped()) continue;
      Answer answer;
      if (request.has_hello()) {
        answer.message.mutable_welcome()->set_connection(std::string(16, 'c'));
      } else {
        answer = lie(request);
        ++lies_;
      }
      std::vector<int> fds;
      for (const Descriptor& one : answer.descriptors) fds.push_back(one.get());
      (void)client.Send(answer.raw.empty() ? answer.message.SerializeAsString() : answer.raw, fds);
    }
  }

  // A get beside such a socket is as good as any: by the channel.
  void ExpectGoodGet(const Lie& lie, const std::string& what) {
    Use(TwoGroups());  // A client that knows nothing yet.
    SetUpAgain();
    Beside(lie, [&] {
      const GetResult got = Get(prompt_->keys());
      EXPECT_TRUE(got.AllGood()) << what << ": " << got.status;
      EXPECT_EQ(buffer_, Payload(prompt_->keys())) << what;
      EXPECT_EQ(client_->local_stats().blocks_copied, 0u) << what;
    });
    EXPECT_GT(std::exchange(lies_, 0), 0) << what;
  }
  void SetUpAgain() {
    listener_ = PacketSocket();
    SetUp();
  }

  std::string name_;
  PacketSocket listener_;
  int lies_ = 0;  // Told so far; the server's while it runs.
  std::optional<Prompt> prompt_;
};

TEST_F(LyingSocketTest, PlacesThatDoNotFitAreNotRead) {
  const std::vector<std::pair<std::string, std::function<void(Answer*)>>> lies = {
      {"memory smaller than it is said to be",
       [](Answer* a) { a->message.mutable_places()->mutable_segments(0)->set_bytes(1 << 30); }},
      {"more slots than bytes",
       [](Answer* a) { a->message.mutable_places()->mutable_segments(0)->set_slots(UINT32_MAX); }},
      {"slots of no bytes",
       [](Answer* a) { a->message.mutable_places()->mutable_segments(0)->set_slot_bytes(0); }},
      {"slots whose sum wraps",
       [](Answer* a) {
         a->message.mutable_places()->mutable_segments(0)->set_slot_bytes(UINT64_MAX / 2 + 1);
       }},
      {"slots smaller than a block",
       [](Answer* a) { a->message.mutable_places()->mutable_segments(0)->set_slot_bytes(64); }},
      {"a page of generations that is empty", [](Answer* a) { a->descriptors[1] = Memory(0); }},
      {"no descriptors", [](Answer* a) { a->descriptors.clear(); }},
      {"one descriptor", [](Answer* a) { a->descriptors.pop_back(); }},
      {"three descriptors", [](Answer* a) { a->descriptors.push_back(Memory(kPageBytes)); }},
      {"a slot that is none",
       [](Answer* a) { a->message.mutable_places()->mutable_places(1)->set_slot(UINT32_MAX); }},
      {"a segment that was not given",
       [](Answer* a) { a->message.mutable_places()->mutable_places(0)->set_segment(9); }},
      {"too few places",
       [](Answer* a) { a->message.mutable_places()->mutable_places()->RemoveLast(); }},
      {"too many places", [](Answer* a) { a->message.mutable_places()->add_places(); }},
      {"no digests",
       [](Answer* a) { a->message.mutable_places()->mutable_places(0)->clear_digests(); }},
      {"bytes of other blocks", [](Answer*) {}},
      {"another kind of answer", [](Answer* a) { a->message.mutable_staged()->set_bytes(1); }},
      {"no answer of any kind", [](Answer* a) { a->raw = "\xff\xff\xff"; }},
      {"a failure that is none", [](Answer* a) { a->message.mutable_failure()->set_code(0); }},
  };
  for (const auto& [what, lie] : lies) {
    ExpectGoodGet(
        [&, lie = lie](const v1::LocalRequest&) {
          Answer answer = Places();
          lie(&answer);
          return answer;
        },
        what);
  }
}

TEST_F(LyingSocketTest, RecallsOfEverythingWithoutEndDoNotHoldACall) {
  ExpectGoodGet(
      [this](const v1::LocalRequest&) {
        clock_.Advance(absl::Seconds(1));  // So that it is waited for once.
        Answer answer;
        answer.message.mutable_recall()->add_segments(1);
        return answer;
      },
      "only recalls");
}

TEST_F(LyingSocketTest, StagingMemoryThatIsNoneIsNotWritten) {
  const Prompt other = MakePrompt(kBlocks, "other");
  Beside(
      [](const v1::LocalRequest& request) {
        Answer answer;
        answer.message.mutable_staged()->set_bytes(request.stage().bytes());
        answer.descriptors.push_back(Memory(kPageBytes));  // Writing past it would be a signal.
        return answer;
      },
      [&] {
        const auto put = Put(other);
        ASSERT_TRUE(put.ok()) << put.status();
        EXPECT_EQ(put->blocks_written, kBlocks);
        EXPECT_GT(client_->local_stats().fallbacks, 0u);
      });
  EXPECT_GT(lies_, 0);
}

// The kernel takes the connection; nobody is there.
TEST_F(LyingSocketTest, ASocketThatIsSilentTakesNoMoreThanTheCallsTime) {
  constexpr absl::Duration kTimeout = absl::Milliseconds(300);
  const absl::Time begun = absl::Now();
  (void)Get(prompt_->keys(), {.timeout = kTimeout});
  // The client's clock stands still, so each of a few waits is the whole of it.
  EXPECT_LT(absl::Now() - begun, 8 * kTimeout);
}

}  // namespace
}  // namespace cairn::testing
