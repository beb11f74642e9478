// cairnctl replay-decisions: runs routing policies over what a router decided, and compares.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/place_text.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"
#include "router/decisions/decision_reader.h"
#include "router/decisions/decision_replay.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;
using router::ChoiceTally;
using router::Decision;
using router::DecisionReader;
using router::DecisionReplay;
using router::RankedChoice;
using router::ReplicaView;

constexpr uint32_t kDifferencesMax = 10'000;
constexpr double kMissWeightMax = 1'000'000;

// Files of one run, as one.
struct Replayed {
  router::DecisionRun run;
  std::optional<DecisionReplay> replay;  // From the first file on.
  uint64_t decisions = 0;
  uint64_t lost_records = 0;
  uint64_t unknown_records = 0;
  uint64_t bytes_used = 0;
  absl::Time first;
  absl::Time last;
  std::string damage;  // Of each file that has one.
};

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// What decided is asked again: anything else than the recorded answer is a surprise.
bool AsksTheSame(const CommandLine& line) {
  return !line.Given("policy") && !line.Given("miss-weight");
}

absl::Status ReadShown(const CommandLine& line, DecisionReplay::Options* options) {
  if (!line.Given("decision")) return absl::OkStatus();
  const std::string& text = line.Get("decision");
  uint64_t sequence = 0;
  const absl::StatusOr<std::string> booking = FromHex(text);
  if (text.size() == 2 * sizeof(router::BookingId) && booking.ok()) {
    options->shown_booking = router::BookingId::FromBytes(*booking);
  } else if (absl::SimpleAtoi(text, &sequence)) {
    options->shown_sequence = sequence;
  } else {
    return UsageError(absl::StrCat("--decision: '", text,
                                   "' is neither the number of a decision nor a booking in hex"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DecisionReplay::Options> ReadOptions(const CommandLine& line,
                                                    const router::DecisionRun& run) {
  DecisionReplay::Options options;
  options.policy_options = run.options;
  if (line.Get("policy") == "all") {
    for (const absl::string_view name : router::RoutePolicyNames()) {
      options.policies.emplace_back(name);
    }
  } else if (line.Given("policy")) {
    options.policies = absl::StrSplit(line.Get("policy"), ',');
    for (const std::string& name : options.policies) {
      const absl::Status known = router::MakeRoutePolicy(name, {}).status();
      if (!known.ok()) return UsageError(absl::StrCat("--policy: ", known.message()));
    }
  }
  if (line.Given("miss-weight")) {
    double& weight = options.policy_options.miss_weight;
    if (!absl::SimpleAtod(line.Get("miss-weight"), &weight) ||
        !(weight >= 1 && weight <= kMissWeightMax)) {
      return UsageError(absl::StrCat("--miss-weight: '", line.Get("miss-weight"),
                                     "' is no number from 1 to ", kMissWeightMax));
    }
  }
  const absl::StatusOr<uint32_t> differences = ParseNumber(line, "differences", kDifferencesMax);
  if (!differences.ok()) return differences.status();
  options.differences_max = *differences;
  options.differences_in_any_bit = AsksTheSame(line);
  if (absl::Status status = ReadShown(line, &options); !status.ok()) return status;
  return options;
}

absl::Status ReadAll(DecisionReader* reader, uint64_t decisions_max, Replayed* replayed) {
  DecisionReplay& replay = *replayed->replay;
  while (decisions_max == 0 || replayed->decisions < decisions_max) {
    const std::optional<DecisionReader::Record> record = reader->Next();
    if (!record.has_value()) break;
    if (const auto* const lost = std::get_if<router::LostDecisions>(&*record)) {
      replayed->lost_records += lost->records;
    } else if (const auto* const outcome = std::get_if<router::DecisionOutcome>(&*record)) {
      replay.Add(*outcome);
    } else {
      const Decision& decision = std::get<Decision>(*record);
      if (!replay.Add(decision)) {
        return absl::NotFoundError(
            absl::StrCat("decision ", replayed->decisions, " was made by the policy \"",
                         absl::Utf8SafeCEscape(decision.policy),
                         "\", which this program does not have; --policy NAME ",
                         "asks another, or take the program of that router's version"));
      }
      if (replayed->decisions == 0) replayed->first = decision.time;
      replayed->last = decision.time;
      ++replayed->decisions;
    }
  }
  return absl::OkStatus();
}

Json JsonOf(const ChoiceTally& tally) {
  return {{"hit_tokens", tally.hit_tokens()},
          {"remote_tokens", tally.remote_tokens()},
          {"computed_tokens", tally.computed_tokens()},
          {"hit_rate", Share(tally.hit_tokens(), tally.prompt_tokens())},
          {"mean_queued_seconds", tally.queued_seconds()},
          {"mean_expected_ttft_seconds", tally.expected_ttft_seconds()},
          {"mean_cost_seconds", tally.cost_seconds()},
          {"busiest_over_mean", tally.BusiestOverMean()}};
}

Json JsonOf(const DecisionReplay::OfPolicy& policy) {
  Json json = {{"policy", policy.policy.empty() ? "as recorded" : policy.policy},
               {"same_choice", policy.same_choice},
               {"other_choice", policy.tally.decisions() - policy.same_choice},
               {"same_answer", policy.same_answer}};
  json.update(JsonOf(policy.tally));
  return json;
}

Json JsonOf(const DecisionReplay::Outcomes& outcomes) {
  return {{"ended", outcomes.ended},
          {"measured", outcomes.measured},
          {"predicted_tokens", outcomes.predicted_tokens},
          {"delivered_tokens", outcomes.delivered_tokens},
          {"moved", outcomes.moved},
          {"unmatched", outcomes.unmatched}};
}

std::string Printable(const Json& name) { return PrintableName(name.get<std::string>()); }

std::string WorkerOf(const Decision& decision, size_t replica) {
  for (const router::ReplicaName& name : *decision.names) {
    if (name.id == decision.replicas[replica]) return name.worker_address;
  }
  return absl::StrCat("replica ", decision.replicas[replica]);
}

// In the order of the replayed answer.
Json CandidatesOf(const DecisionReplay::Answered& answered) {
  Json candidates = Json::array();
  for (const RankedChoice& choice : answered.ranked) {
    const ReplicaView& view = answered.decision.snapshot.replicas[choice.replica];
    const auto& recorded = answered.decision.ranked;
    const auto place =
        std::find_if(recorded.begin(), recorded.end(),
                     [&choice](const RankedChoice& one) { return one.replica == choice.replica; });
    Json candidate = {{"worker_address", WorkerOf(answered.decision, choice.replica)},
                      {"reason", std::string(router::RouteReasonName(choice.reason))},
                      {"score", choice.score}};
    if (place != recorded.end()) {
      candidate["recorded_place"] = place - recorded.begin() + 1;
      candidate["recorded_score"] = place->score;
      candidate["recorded_reason"] = std::string(router::RouteReasonName(place->reason));
    }
    candidate.update(Json{{"own_tokens", view.OwnTokens()},
                          {"remote_tokens", view.remote_tokens},
                          {"queued_prefill_tokens", view.queued_prefill_tokens},
                          {"running_kv_tokens", view.running_kv_tokens},
                          {"requests", view.requests},
                          {"queued_seconds", choice.terms.queued_seconds},
                          {"compute_seconds", choice.terms.compute_seconds},
                          {"fetch_seconds", choice.terms.fetch_seconds},
                          {"expected_ttft_seconds", choice.terms.expected_ttft_seconds},
                          {"ramp_seconds", choice.terms.ramp_seconds},
                          {"label_seconds", choice.terms.label_seconds},
                          {"session_seconds", choice.terms.session_seconds},
                          {"trust", choice.terms.trust}});
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

Json JsonOf(const DecisionReplay::Answered& answered) {
  const Decision& decision = answered.decision;
  return {{"sequence", decision.snapshot.sequence},
          {"time", absl::FormatTime(decision.time, absl::UTCTimeZone())},
          {"booking_hex", ToHex(decision.booking.view())},
          {"prompt_tokens", decision.snapshot.prompt_tokens},
          {"recorded_policy", decision.policy},
          {"recorded_choice", WorkerOf(decision, decision.ranked.front().replica)},
          {"policy", answered.policy},
          {"score_unit", answered.score_unit},
          {"choice", WorkerOf(decision, answered.ranked.front().replica)},
          {"candidates", CandidatesOf(answered)}};
}

Json Report(const Replayed& replayed) {
  const DecisionReplay& replay = *replayed.replay;
  Json report = {{"router_policy", replayed.run.policy},
                 {"share", replayed.run.share},
                 {"decisions", replayed.decisions},
                 {"seconds", absl::ToDoubleSeconds(replayed.last - replayed.first)},
                 {"lost_records", replayed.lost_records},
                 {"unknown_records", replayed.unknown_records},
                 {"bytes_used", replayed.bytes_used},
                 {"damage", replayed.damage},
                 {"recorded", JsonOf(replay.recorded())},
                 {"policies", Json::array()},
                 {"outcomes", JsonOf(replay.outcomes())},
                 {"shown", Json::array()},
                 {"differences", Json::array()}};
  for (const DecisionReplay::OfPolicy& policy : replay.policies()) {
    report["policies"].push_back(JsonOf(policy));
  }
  for (const DecisionReplay::Answered& answered : replay.shown()) {
    report["shown"].push_back(JsonOf(answered));
  }
  for (const DecisionReplay::Answered& answered : replay.differences()) {
    report["differences"].push_back(JsonOf(answered));
  }
  return report;
}

void PrintRow(const std::string& name, const std::string& same, const ChoiceTally& tally,
              std::ostream* out) {
  *out << absl::StrFormat("%-14s %8s %8.4f %10.3f %10.3f %10.3f %13.3f\n", name, same,
                          Share(tally.hit_tokens(), tally.prompt_tokens()), tally.queued_seconds(),
                          tally.expected_ttft_seconds(), tally.cost_seconds(),
                          tally.BusiestOverMean());
}

void PrintTable(const Replayed& replayed, bool the_same, std::ostream* out) {
  const DecisionReplay& replay = *replayed.replay;
  *out << replayed.decisions << " decisions of a router with the policy "
       << absl::Utf8SafeCEscape(replayed.run.policy) << ", over "
       << absl::FormatDuration(replayed.last - replayed.first) << "; " << replayed.lost_records
       << " records are missing\n\n"
       << absl::StrFormat("%-14s %8s %8s %10s %10s %10s %13s\n", "policy", "same", "hit rate",
                          "queued s", "ttft s", "cost s", "busiest/mean");
  PrintRow("(recorded)", "", replay.recorded(), out);
  for (const DecisionReplay::OfPolicy& policy : replay.policies()) {
    PrintRow(policy.policy.empty() ? "(replayed)" : policy.policy,
             absl::StrFormat("%.1f%%", 100 * Share(policy.same_choice, replayed.decisions)),
             policy.tally, out);
  }
  *out
      << "\nsame: share of the decisions with the recorded choice. queued, ttft: means, expected "
         "at "
         "that moment.\ncost: by the default policy's own rule, which favours it. busiest/mean: of "
         "computed tokens.\n";
  if (the_same) {
    *out << "\n"
         << replay.policies().front().same_answer << " of " << replayed.decisions
         << " answers are the recorded ones, bit for bit\n";
  }
  const DecisionReplay::Outcomes& outcomes = replay.outcomes();
  *out << "\n"
       << outcomes.measured << " were reported on: " << outcomes.predicted_tokens
       << " cached tokens predicted, " << outcomes.delivered_tokens << " delivered\n";
}

void PrintAnswered(const DecisionReplay::Answered& answered, std::ostream* out) {
  const Json json = JsonOf(answered);
  *out << "\ndecision " << json["sequence"] << ", " << json["prompt_tokens"]
       << " tokens: " << Printable(json["recorded_policy"]) << " chose "
       << Printable(json["recorded_choice"]) << ", " << answered.policy << " chooses "
       << Printable(json["choice"]) << "; its score is in " << answered.score_unit << "\n"
       << absl::StrFormat("  %-24s %-10s %12s %16s %9s %9s %9s %9s %9s %9s  %s\n", "worker",
                          "reason", "score", "recorded", "own", "remote", "requests", "queued s",
                          "compute s", "fetch s", "also");
  for (const Json& one : json["candidates"]) {
    const bool recorded = one.contains("recorded_place");
    *out << absl::StrFormat(
        "  %-24s %-10s %12.4f %16s %9d %9d %9d %9.3f %9.3f %9.3f  %s\n",
        Printable(one["worker_address"]), one["reason"].get<std::string>(),
        one["score"].get<double>(),
        recorded ? absl::StrFormat("%d (%.4f)", one["recorded_place"].get<int>(),
                                   one["recorded_score"].get<double>())
                 : "-",
        one["own_tokens"].get<uint64_t>(), one["remote_tokens"].get<uint64_t>(),
        one["requests"].get<uint64_t>(), one["queued_seconds"].get<double>(),
        one["compute_seconds"].get<double>(), one["fetch_seconds"].get<double>(), RareTerms(one));
  }
}

absl::Status ReplayFile(const CommandLine& line, const std::string& path, uint64_t decisions_max,
                        const Streams& streams, Replayed* replayed) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  if (path != "-" && !file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  absl::StatusOr<DecisionReader> reader = DecisionReader::Open(path == "-" ? streams.in : &file);
  if (!reader.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", reader.status().message()));
  }
  if (!replayed->replay.has_value()) {
    replayed->run = reader->run();
    const absl::StatusOr<DecisionReplay::Options> options = ReadOptions(line, replayed->run);
    if (!options.ok()) return options.status();
    absl::StatusOr<DecisionReplay> replay = DecisionReplay::Make(*options);
    if (!replay.ok()) return replay.status();
    replayed->replay.emplace(*std::move(replay));
  } else if (reader->run().started != replayed->run.started) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": is of another run of a router than the file before it; replay each "
                     "alone"));
  }
  if (absl::Status status = ReadAll(&*reader, decisions_max, replayed); !status.ok()) {
    return status;
  }
  replayed->bytes_used += reader->bytes_used();
  replayed->unknown_records += reader->records_unknown();
  if (reader->damage().empty()) return absl::OkStatus();
  const std::string damage = absl::StrCat(path, ": what follows byte ", reader->bytes_used(),
                                          " is not used: ", reader->damage());
  if (streams.err != nullptr) *streams.err << damage << "\n";
  absl::StrAppend(&replayed->damage, replayed->damage.empty() ? "" : "; ", damage);
  return absl::OkStatus();
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const std::string& output = line.Get("output");
  if (output != "text" && output != "json") {
    return UsageError(absl::StrCat("--output: '", output, "' is neither text nor json"));
  }
  if (line.Get("decisions").empty()) {
    return UsageError("--decisions: name the file that cairn-router --record-decisions wrote");
  }
  uint64_t decisions_max = 0;
  if (!absl::SimpleAtoi(line.Get("limit"), &decisions_max)) {
    return UsageError(absl::StrCat("--limit: '", line.Get("limit"), "' is no whole number"));
  }
  Replayed replayed;
  const std::vector<std::string> paths = absl::StrSplit(line.Get("decisions"), ',');
  for (const std::string& path : paths) {
    absl::Status status = ReplayFile(line, path, decisions_max, streams, &replayed);
    if (!status.ok()) return status;
  }
  if (line.Given("decision") && replayed.replay->shown().empty()) {
    return absl::NotFoundError(absl::StrCat("--decision: no decision of the ", replayed.decisions,
                                            " that were read is ", line.Get("decision")));
  }
  if (output == "json") return Print(line, Report(replayed), streams.out);
  PrintTable(replayed, AsksTheSame(line), streams.out);
  for (const DecisionReplay::Answered& answered : replayed.replay->shown()) {
    PrintAnswered(answered, streams.out);
  }
  for (const DecisionReplay::Answered& answered : replayed.replay->differences()) {
    PrintAnswered(answered, streams.out);
  }
  return absl::OkStatus();
}

}  // namespace

Command ReplayDecisionsCommand() {
  return {
      .name = "replay-decisions",
      .summary = "runs routing policies over what a router decided, and compares",
      .flags = WithCommonFlags(
          {{"decisions", "FILES", "",
            "what cairn-router --record-decisions=FILE wrote: FILE, or FILE.1,FILE for all that "
            "is kept of its run; - reads standard input"},
           {"policy", "NAMES", "",
            "policies to ask, comma-separated, or all; without it each "
            "decision's own"},
           {"miss-weight", "X", "", "the default policy's; without it the router's"},
           {"limit", "N", "0", "ends after so many decisions; 0: with the file"},
           {"decision", "N", "",
            "print this one, with each candidate's terms: its number in the run, or its booking in "
            "hex"},
           {"differences", "N", "0", "print the first N that differ, likewise"}},
          /*asks_node=*/false),
      .run = Run};
}

}  // namespace cairn::ctl
