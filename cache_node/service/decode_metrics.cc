#include "cache_node/service/decode_metrics.h"

#include <array>
#include <string>
#include <utility>

namespace cairn::node {
namespace {

constexpr CallbackKind kGauge = CallbackKind::kGauge;
constexpr CallbackKind kCounter = CallbackKind::kCounter;

constexpr std::array<absl::string_view, kSealOutcomes> kSealNames = {
    "sealed", "there", "in_progress", "no_space", "declined", "parent_missing", "refused"};

}  // namespace

DecodeMetrics::DecodeMetrics(Metrics* metrics, const DecodeEngine* engine,
                             const DecodeStreams* streams, const DecodeBytes* bytes) {
  AddRoom(metrics, engine);
  AddEnds(metrics, engine);
  AddSteps(metrics, engine);
  AddSeals(metrics, engine);
  Add(metrics, kGauge, "cairn_decode_streams", "Open decode streams.",
      [streams] { return streams->size(); });
  Add(metrics, kGauge, "cairn_decode_in_flight_bytes",
      "Requests of attention and their answers, from read to written.",
      [bytes] { return bytes->bytes(); });
  Add(metrics, kCounter, "cairn_decode_refused_in_flight_total",
      "Requests of attention that found no room in flight.", [bytes] { return bytes->refused(); });
}

Histogram DecodeMetrics::RoundItems(Metrics* metrics) {
  return metrics->AddHistogram("cairn_decode_round_items",
                               "Items that were computed together, of one or more requests.",
                               ExponentialBuckets(1, 2, 12));
}

Histogram DecodeMetrics::RoundSeconds(Metrics* metrics) {
  return metrics->AddHistogram("cairn_decode_round_seconds", "From a round's begin to its results.",
                               ExponentialBuckets(5e-6, 2, 20));
}

void DecodeMetrics::Add(Metrics* metrics, CallbackKind kind, absl::string_view name,
                        absl::string_view help, std::function<uint64_t()> value) {
  callbacks_.push_back(metrics->AddCallback(
      kind, name, help, [value = std::move(value)] { return static_cast<double>(value()); }));
}

void DecodeMetrics::AddRoom(Metrics* metrics, const DecodeEngine* engine) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t DecodeNumbers::*field) {
    Add(metrics, kGauge, name, help, [engine, field] { return engine->numbers().*field; });
  };
  add("cairn_decode_bytes_max", "Memory for tokens of running sequences.",
      &DecodeNumbers::bytes_max);
  add("cairn_decode_bytes_used", "Of it, that pages take.", &DecodeNumbers::bytes_used);
  add("cairn_decode_bytes_reserved", "Of it, that sequences may still take.",
      &DecodeNumbers::bytes_reserved);
  Add(metrics, kGauge, "cairn_decode_bytes_free", "Of it, that is neither used nor reserved.",
      [engine] { return engine->numbers().bytes_free(); });
  add("cairn_decode_pinned_bytes", "Stored blocks that running sequences hold.",
      &DecodeNumbers::pinned_bytes);
  add("cairn_decode_book_bytes", "What is known of running sequences.", &DecodeNumbers::book_bytes);
  add("cairn_decode_tokens_reserved", "Tokens that sequences may still append.",
      &DecodeNumbers::tokens_reserved);
  add("cairn_decode_tokens_free",
      "Tokens that would fit beside, at the size of the sequence opened last.",
      &DecodeNumbers::tokens_free);
  add("cairn_decode_sequences", "Running sequences.", &DecodeNumbers::running);
}

void DecodeMetrics::AddEnds(Metrics* metrics, const DecodeEngine* engine) {
  const auto add = [&](absl::string_view name, absl::string_view help,
                       uint64_t DecodeNumbers::*field) {
    Add(metrics, kCounter, name, help, [engine, field] { return engine->numbers().*field; });
  };
  add("cairn_decode_opened_total", "Sequences opened.", &DecodeNumbers::opened);
  add("cairn_decode_forked_total", "Sequences made by forks.", &DecodeNumbers::forked);
  add("cairn_decode_refused_total", "Openings and forks refused for want of room.",
      &DecodeNumbers::refused);
  add("cairn_decode_closed_total", "Sequences that their caller closed.", &DecodeNumbers::closed);
  add("cairn_decode_ended_idle_total", "Sequences that ended for being idle.",
      &DecodeNumbers::ended_idle);
  add("cairn_decode_ended_removed_total", "Sequences whose blocks or namespace were removed.",
      &DecodeNumbers::ended_removed);
  Add(metrics, kCounter, "cairn_decode_reclaimed_total",
      "Sequences that ended by themselves: idle, or removed.",
      [engine] { return engine->numbers().reclaimed(); });
  Add(metrics, kCounter, "cairn_decode_preempted_total",
      "Sequences that ended to make room for others: none, as room is reserved.",
      [] { return uint64_t{0}; });
}

void DecodeMetrics::AddSteps(Metrics* metrics, const DecodeEngine* engine) {
  const auto add = [&](CallbackKind kind, absl::string_view name, absl::string_view help,
                       uint64_t DecodeCounts::*field) {
    Add(metrics, kind, name, help, [engine, field] { return engine->counts().*field; });
  };
  add(kGauge, "cairn_decode_waiting", "Requests that wait for the executor.",
      &DecodeCounts::waiting);
  add(kCounter, "cairn_decode_refused_waiting_total", "Requests that found too many waiting.",
      &DecodeCounts::refused);
  add(kCounter, "cairn_decode_steps_total", "Requests of attention that were done.",
      &DecodeCounts::steps);
  add(kCounter, "cairn_decode_items_total", "Items of them that were computed.",
      &DecodeCounts::items);
  add(kCounter, "cairn_decode_rounds_total",
      "Times that requests were done together, or one alone.", &DecodeCounts::rounds);
  add(kCounter, "cairn_decode_inline_rounds_total",
      "Of them, on the thread that brought the request.", &DecodeCounts::inline_rounds);
  add(kCounter, "cairn_decode_batches_total", "Batches of the kernels.", &DecodeCounts::batches);
  const auto attended = [&](absl::string_view name, absl::string_view help,
                            uint64_t AttendTotals::*field) {
    Add(metrics, kCounter, name, help,
        [engine, field] { return engine->counts().attended.*field; });
  };
  attended("cairn_decode_rows_total", "Rows of queries, over all heads.", &AttendTotals::rows);
  attended("cairn_decode_shared_rows_total",
           "Of them, that had a pass over common blocks with others.", &AttendTotals::shared_rows);
  attended("cairn_decode_read_bytes_total", "Stored bytes that kernels read.",
           &AttendTotals::read_bytes);
  attended("cairn_decode_saved_bytes_total",
           "Stored bytes that were not read again, as callers share them.",
           &AttendTotals::saved_bytes);
  Add(metrics, kCounter, "cairn_decode_appended_rows_total",
      "Tokens appended, of one layer and slice each.",
      [engine] { return engine->numbers().appended_rows; });
}

void DecodeMetrics::AddSeals(Metrics* metrics, const DecodeEngine* engine) {
  for (size_t i = 0; i < kSealOutcomes; ++i) {
    callbacks_.push_back(metrics->AddCallback(
        kCounter, "cairn_decode_seals_total",
        "Full blocks of sequences that were to be published, by what came of it.",
        [engine, i] { return static_cast<double>(engine->numbers().seals[i]); },
        {{"outcome", std::string(kSealNames[i])}}));
  }
  Add(metrics, kCounter, "cairn_decode_seals_put_off_total",
      "Times that no page was free to copy a block that is being published to.",
      [engine] { return engine->numbers().seals_no_room; });
}

}  // namespace cairn::node
