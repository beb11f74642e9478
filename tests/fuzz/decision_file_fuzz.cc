// Promises held against every file: opening it fails with INVALID_ARGUMENT, or its records are read
// up to its end or to a damage that is said; a decision that was read comes out of writing and
// reading it again unchanged, and every policy ranks it, each replica once, the same each time.
#include "tests/fuzz/decision_file_fuzz.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "google/protobuf/stubs/logging.h"
#include "router/decisions/decision_codec.h"
#include "router/decisions/decision_frames.h"
#include "router/decisions/decision_reader.h"
#include "router/decisions/decision_recorder.h"
#include "router/decisions/decision_replay.h"
#include "tests/router/decisions/memory_storage.h"
#include "tests/router/decisions/sample_decisions.h"
#include "tests/testing/fake_clock.h"

namespace cairn::testing {
namespace {

using router::AppendDecisionFrame;
using router::Decision;
using router::DecisionReader;
using router::kDecisionFrameHeadBytes;
using router::kDecisionHeadBytes;

// As long as its lengths lead to frames.
std::string Mend(absl::string_view file) {
  std::string mended(file.substr(0, kDecisionHeadBytes));
  file.remove_prefix(mended.size());
  while (file.size() >= kDecisionFrameHeadBytes) {
    uint32_t length = 0;
    std::memcpy(&length, file.data(), sizeof(length));
    if (length > file.size() - kDecisionFrameHeadBytes) break;
    AppendDecisionFrame(file.substr(kDecisionFrameHeadBytes, length), mended.size(), &mended);
    file.remove_prefix(kDecisionFrameHeadBytes + length);
  }
  return absl::StrCat(mended, file);
}

std::string BehindSoundOnes(absl::string_view payload) {
  std::string file = SoundDecisionFile(1, 1);
  AppendDecisionFrame(payload, file.size(), &file);
  return file;
}

void CheckSurvivesWriting(const Decision& decision) {
  v1::Decision message;
  router::ToMessage(decision, &message);
  const absl::StatusOr<Decision> again = router::DecisionFromMessage(message);
  CAIRN_CHECK_OK(again.status());
  CAIRN_CHECK(again->time == decision.time && again->booking == decision.booking &&
              again->fingerprint == decision.fingerprint && again->policy == decision.policy &&
              again->degraded == decision.degraded && again->replicas == decision.replicas &&
              again->snapshot == decision.snapshot && again->ranked == decision.ranked);
}

void CheckPolicies(const Decision& decision, const router::RoutePolicySet& policies) {
  for (const absl::string_view name : router::RoutePolicyNames()) {
    const router::RoutePolicy& policy = **policies.Find(name);
    const std::vector<router::RankedChoice> ranked = policy.Rank(decision.snapshot);
    std::set<size_t> seen;
    for (const router::RankedChoice& choice : ranked) seen.insert(choice.replica);
    CAIRN_CHECK(seen.size() == decision.snapshot.replicas.size() && seen.size() == ranked.size());
    CAIRN_CHECK(ranked == policy.Rank(decision.snapshot));
  }
}

}  // namespace

size_t DecisionsIn(absl::string_view file) {
  const google::protobuf::LogSilencer silencer;  // Of what is no message.
  std::istringstream in{std::string(file)};
  absl::StatusOr<DecisionReader> reader = DecisionReader::Open(&in);
  if (!reader.ok()) {
    CAIRN_CHECK(absl::IsInvalidArgument(reader.status()));
    return 0;
  }
  const router::RoutePolicySet policies(reader->run().options);
  absl::StatusOr<router::DecisionReplay> replay = router::DecisionReplay::Make(
      {.policies = {"product"}, .policy_options = reader->run().options, .differences_max = 3});
  CAIRN_CHECK_OK(replay.status());
  size_t decisions = 0;
  while (const std::optional<DecisionReader::Record> record = reader->Next()) {
    if (const auto* const outcome = std::get_if<router::DecisionOutcome>(&*record)) {
      replay->Add(*outcome);
    } else if (const auto* const decision = std::get_if<Decision>(&*record)) {
      CAIRN_CHECK(decision->names != nullptr);
      CheckSurvivesWriting(*decision);
      CheckPolicies(*decision, policies);
      CAIRN_CHECK(replay->Add(*decision));
      ++decisions;
    }
  }
  CAIRN_CHECK(reader->bytes_used() <= file.size());
  CAIRN_CHECK(reader->damage().empty() == (reader->bytes_used() == file.size()));
  CAIRN_CHECK(replay->recorded().decisions() == decisions);
  return decisions;
}

std::string DecisionFuzzInput(DecisionInput kind, absl::string_view bytes) {
  return absl::StrCat(std::string(1, static_cast<char>(kind)), bytes);
}

std::string SoundDecisionFile(uint32_t number, uint32_t decisions) {
  router::MemoryDisk disk;
  const FakeClock clock;
  router::DecisionRecorderOptions options;
  options.policy = "prefix_cost";
  router::DecisionRecorder recorder(options, std::make_unique<router::MemoryStorage>(&disk),
                                    &clock);
  CAIRN_CHECK_OK(recorder.Open());
  const auto names = router::NumberedNames(4);
  for (uint32_t i = 0; i < decisions; ++i) {
    recorder.OnDecision(router::NumberedDecision(number + i, names));
    router::DecisionOutcome outcome;
    outcome.booking = router::NumberedBooking(number + i);
    outcome.cached_tokens = 64;
    recorder.OnOutcome(outcome);
  }
  recorder.Flush();
  return disk.files.front();
}

std::string SoundDecisionRecord(uint32_t number) {
  Decision decision = router::NumberedDecision(number, nullptr);
  decision.snapshot = router::FullSnapshot();
  decision.ranked = {router::FullChoice(1), router::FullChoice(0)};
  decision.replicas = {1, 2};
  v1::DecisionRecord record;
  router::ToMessage(decision, record.mutable_decision());
  return record.SerializeAsString();
}

}  // namespace cairn::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cairn::testing::DecisionInput;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (static_cast<DecisionInput>(data[0] % cairn::testing::kDecisionInputs)) {
    case DecisionInput::kFile:
      cairn::testing::DecisionsIn(bytes);
      break;
    case DecisionInput::kMendedFile:
      cairn::testing::DecisionsIn(cairn::testing::Mend(bytes));
      break;
    case DecisionInput::kRecord:
      cairn::testing::DecisionsIn(cairn::testing::BehindSoundOnes(bytes));
      break;
  }
  return 0;
}
