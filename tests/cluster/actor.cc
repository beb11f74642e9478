// cairn_cluster_actor: a client that a test runs as a process, in order to kill it.
//
// It says each step on stdout, one line, and then waits for a line on stdin before it goes on: so a
// test that read a line knows where the actor is, and kills it exactly there. It ends when stdin
// does.
//
//   writer  "reserved HEX" (or "refused"), "half", "written", "committed BLOCKS COMPLETE"
//   rank    "attached", "half", "written", "committed BLOCKS COMPLETE"
//   reader  "joined", "holding" (with --hold_at_block), "read USABLE WRONG CODE", "ended COMPLETE"
//   mapper  "mapped BLOCKS" (in place), "checked WRONG" (the same, again), "got USABLE WRONG CODE"
//   caller  "calling", then random calls without a pause; aborts when an answer breaks the contract
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hex.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/numbered_prompt.h"
#include "tests/cluster/random_caller.h"
#include "tests/cluster/test_client.h"

ABSL_FLAG(std::string, role, "", "writer, rank, reader, mapper or caller.");
ABSL_FLAG(std::string, node, "", "Address of the node.");
ABSL_FLAG(uint32_t, prompt, 0, "Number of the prompt.");
ABSL_FLAG(uint32_t, blocks, 1, "Blocks of the prompt.");
ABSL_FLAG(uint32_t, ttl_ms, 0, "writer: life of its token; 0 takes the node's default.");
ABSL_FLAG(std::string, token, "", "rank: the token, in hex.");
ABSL_FLAG(uint32_t, slice, 0, "rank: the slice that it writes.");
ABSL_FLAG(std::string, lease, "", "reader: the lease, in hex.");
ABSL_FLAG(uint32_t, reader, 0, "reader: its number.");
ABSL_FLAG(int32_t, hold_at_block, -1, "reader: block before whose bytes it stops reading.");
ABSL_FLAG(uint32_t, usable_max, 1000000, "reader: it says that it can use at most so many blocks.");
ABSL_FLAG(uint64_t, seed, 0, "caller: seed of its choices.");

namespace cairn::testing {
namespace {

// Says where the actor is and waits until it may go on; false when it is to end.
bool Step(const std::string& line) {
  std::cout << line << std::endl;
  std::string go;
  return static_cast<bool>(std::getline(std::cin, go));
}

template <typename Id>
Id IdOf(const std::string& hex) {
  const absl::StatusOr<std::string> bytes = FromHex(hex);
  CAIRN_CHECK_OK(bytes.status());
  const auto id = Id::FromBytes(*bytes);
  CAIRN_CHECK_MSG(id.has_value(), hex);
  return *id;
}

// Writes `parts` of every reserved block in two steps, commits, and says so.
int WriteInSteps(const NamespaceHandle& name_space, std::vector<PartLayers> first,
                 std::vector<PartLayers> second, WriteSession session) {
  const PayloadOf payload(name_space, session.keys());
  auto written = session.Write(session.reserved(), first, payload);
  CAIRN_CHECK_OK(written.status());
  CAIRN_CHECK(written->AllWritten());
  if (!Step("half")) return 0;
  written = session.Write(session.reserved(), second, payload);
  CAIRN_CHECK_OK(written.status());
  CAIRN_CHECK(written->AllWritten());
  if (!Step("written")) return 0;
  const absl::StatusOr<CommitResult> commit = session.Commit();
  CAIRN_CHECK_OK(commit.status());
  Step(absl::StrCat("committed ", commit->blocks_present, " ", commit->complete));
  return 0;
}

int RunWriter(CacheNodeClient& client, const NamespaceHandle& name_space) {
  const NumberedPrompt prompt(client, name_space, absl::GetFlag(FLAGS_prompt),
                              absl::GetFlag(FLAGS_blocks));
  ReserveOptions options;
  options.token_ttl = absl::Milliseconds(absl::GetFlag(FLAGS_ttl_ms));
  absl::StatusOr<WriteSession> session =
      client.Reserve(name_space, prompt.prompt(), 0, prompt.keys().size(), options);
  CAIRN_CHECK_OK(session.status());
  if (!session->token()) {
    Step("refused");
    return 0;
  }
  if (!Step(absl::StrCat("reserved ", ToHex(session->token()->view())))) return 0;
  return WriteInSteps(
      name_space, {{.group = 0, .slice = 0}},
      {{.group = 0, .slice = 1}, {.group = 0, .slice = 2}, {.group = 0, .slice = 3}},
      *std::move(session));
}

int RunRank(CacheNodeClient& client, const NamespaceHandle& name_space) {
  const NumberedPrompt prompt(client, name_space, absl::GetFlag(FLAGS_prompt),
                              absl::GetFlag(FLAGS_blocks));
  WriteSession::Ticket ticket;
  ticket.token = IdOf<TokenId>(absl::GetFlag(FLAGS_token));
  ticket.keys = prompt.keys();
  for (uint32_t i = 0; i < prompt.keys().size(); ++i) ticket.reserved.push_back(i);
  WriteSession session = client.AttachWrite(name_space, ticket);
  if (!Step("attached")) return 0;
  const uint32_t slice = absl::GetFlag(FLAGS_slice);
  return WriteInSteps(name_space, {{.group = 0, .slice = slice, .first_layer = 0, .layers = 1}},
                      {{.group = 0, .slice = slice, .first_layer = 1, .layers = 1}},
                      std::move(session));
}

// Reads the blocks, standing still before the bytes of --hold_at_block.
CheckedRead ReadSlowly(CacheNodeClient& client, const NamespaceHandle& name_space,
                       absl::Span<const BlockKey> keys, const GetOptions& options) {
  std::vector<uint8_t> bytes(keys.size() * name_space.block_bytes(), 0xa5);
  const ContiguousBlocks blocks(&name_space.payload_map(), absl::MakeSpan(bytes));
  const int64_t hold_at = absl::GetFlag(FLAGS_hold_at_block);
  // The client asks for every place once before it starts.
  size_t checks_left = keys.size() * name_space.payload_map().segment_count();
  bool held = false;
  const auto place = [&](size_t block, const SegmentId& id) {
    if (checks_left > 0) {
      --checks_left;
    } else if (!held && static_cast<int64_t>(block) == hold_at) {
      held = true;
      Step("holding");
    }
    return blocks(block, id);
  };
  CheckedRead read;
  read.result = client.Get(name_space, keys, place, options);
  read.wrong = CountWrong(name_space, keys, bytes, read.result);
  return read;
}

int RunReader(CacheNodeClient& client, const NamespaceHandle& name_space) {
  const NumberedPrompt prompt(client, name_space, absl::GetFlag(FLAGS_prompt),
                              absl::GetFlag(FLAGS_blocks));
  GetOptions options;
  options.lease = IdOf<LeaseId>(absl::GetFlag(FLAGS_lease));
  ReadLease lease = client.JoinLease(*options.lease, absl::GetFlag(FLAGS_reader), 1);
  if (!Step("joined")) return 0;
  const CheckedRead read = ReadSlowly(client, name_space, prompt.keys(), options);
  const auto usable = static_cast<uint32_t>(
      std::min<size_t>(read.result.usable_prefix, absl::GetFlag(FLAGS_usable_max)));
  if (!Step(absl::StrCat("read ", usable, " ", read.wrong, " ",
                         absl::StatusCodeToString(read.result.status.code())))) {
    return 0;
  }
  const absl::StatusOr<bool> complete = lease.End({&usable, 1});
  Step(absl::StrCat("ended ", complete.ok() ? absl::StrCat(*complete)
                                            : absl::StatusCodeToString(complete.status().code())));
  return 0;
}

// Segments of blocks read in place that are not what was written.
uint64_t CountWrongInPlace(const NamespaceHandle& name_space, const NumberedPrompt& prompt,
                           const InPlaceBlocks& blocks) {
  const PayloadOf payload(name_space, prompt.keys());
  const PayloadMap& map = name_space.payload_map();
  uint64_t wrong = 0;
  for (size_t block = 0; block < blocks.there_prefix(); ++block) {
    for (size_t i = 0; i < map.segment_count(); ++i) {
      const SegmentId id = map.SegmentAt(i);
      if (blocks.segment(block, id) != payload(block, id)) ++wrong;
    }
  }
  return wrong;
}

int RunMapper(CacheNodeClient& client, const NamespaceHandle& name_space) {
  const NumberedPrompt prompt(client, name_space, absl::GetFlag(FLAGS_prompt),
                              absl::GetFlag(FLAGS_blocks));
  const absl::StatusOr<InPlaceBlocks> blocks = client.ReadInPlace(name_space, prompt.keys());
  CAIRN_CHECK_OK(blocks.status());
  if (!Step(absl::StrCat("mapped ", blocks->there_prefix()))) return 0;
  if (!Step(absl::StrCat("checked ", CountWrongInPlace(name_space, prompt, *blocks)))) return 0;
  const CheckedRead read = GetAndCompare(client, name_space, prompt.keys());
  Step(absl::StrCat("got ", read.result.usable_prefix, " ", read.wrong, " ",
                    absl::StatusCodeToString(read.result.status.code())));
  return 0;
}

int RunCaller(CacheNodeClient& client, const NamespaceHandle& name_space) {
  RandomCaller caller(&client, name_space, absl::GetFlag(FLAGS_seed));
  std::cout << "calling" << std::endl;
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 0) == 0) CAIRN_CHECK_OK(caller.Call());
  return 0;
}

int Run() {
  TestClient client(absl::GetFlag(FLAGS_node));
  const NamespaceHandle name_space = Register(*client, SmallBlocks());
  const std::string role = absl::GetFlag(FLAGS_role);
  if (role == "writer") return RunWriter(*client, name_space);
  if (role == "rank") return RunRank(*client, name_space);
  if (role == "reader") return RunReader(*client, name_space);
  if (role == "mapper") return RunMapper(*client, name_space);
  if (role == "caller") return RunCaller(*client, name_space);
  std::cerr << "unknown --role=" << role << "\n";
  return 2;
}

}  // namespace
}  // namespace cairn::testing

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return cairn::testing::Run();
}
