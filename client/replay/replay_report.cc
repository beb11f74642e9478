#include "client/replay/replay_report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cairn::replay {
namespace {

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void AppendCount(absl::string_view what, uint64_t value, std::string* out) {
  absl::StrAppendFormat(out, "  %-24s %14d\n", what, value);
}

void AppendHits(absl::string_view what, uint64_t blocks, double rate, std::string* out) {
  absl::StrAppendFormat(out, "  %-24s %14d blocks %8.4f of tokens\n", what, blocks, rate);
}

void AppendLatency(absl::string_view what, const LatencySummary& latency, std::string* out) {
  absl::StrAppendFormat(out, "  %-24s %11.3f ms p50 %11.3f ms p99\n", what,
                        absl::ToDoubleMilliseconds(latency.p50),
                        absl::ToDoubleMilliseconds(latency.p99));
}

void AddLatency(const std::string& name, const LatencySummary& latency,
                nlohmann::ordered_json* json) {
  (*json)[name + "_p50_us"] = absl::ToDoubleMicroseconds(latency.p50);
  (*json)[name + "_p99_us"] = absl::ToDoubleMicroseconds(latency.p99);
}

// Why the system refused; read at once after it did.
std::string Reason() { return errno == 0 ? "it does not say why" : std::strerror(errno); }

absl::Status CannotWrite(absl::string_view path) {
  return absl::NotFoundError(absl::StrCat("cannot write ", path, ": ", Reason()));
}

}  // namespace

LatencySummary LatencySummary::Of(const LatencyRecorder& recorder) {
  return {recorder.Quantile(0.50), recorder.Quantile(0.99)};
}

double ReplayReport::hit_rate_tokens() const { return Ratio(hit_tokens, tokens_looked_up); }

double ReplayReport::ideal_hit_rate_tokens() const {
  return Ratio(ideal_hit_tokens, tokens_looked_up);
}

double ReplayReport::lru_hit_rate_tokens() const { return Ratio(lru_hit_tokens, tokens_looked_up); }

std::string ReplayReport::ToTable() const {
  std::string out;
  AppendCount("requests", requests, &out);
  AppendCount("empty requests", empty_requests, &out);
  AppendCount("failed requests", failed_requests, &out);
  AppendCount("wrong bytes", wrong_bytes, &out);
  AppendCount("mismatched segments", mismatched_segments, &out);
  AppendCount("tokens looked up", tokens_looked_up, &out);
  AppendHits("hits", hit_blocks, hit_rate_tokens(), &out);
  AppendHits("  unlimited cache", ideal_hit_blocks, ideal_hit_rate_tokens(), &out);
  AppendHits(absl::StrCat("  LRU of ", lru_capacity_blocks), lru_hit_blocks, lru_hit_rate_tokens(),
             &out);
  AppendCount("  from device", hit_blocks_device, &out);
  AppendCount("  from host", hit_blocks_host, &out);
  AppendCount("  from disk", hit_blocks_disk, &out);
  if (shared_requests > 0) {
    AppendCount("  from public regions", hit_blocks_public, &out);
    AppendCount("requests with such", shared_requests, &out);
    AppendCount("  in their own scope", own_scope_requests, &out);
  }
  AppendCount("stored blocks", stored_blocks, &out);
  AppendCount("most computations of one", stampede_computations, &out);
  AppendCount("fallbacks", fallbacks, &out);
  AppendCount("requests without a node", uncached_requests, &out);
  absl::StrAppendFormat(&out, "  %-24s %14.3f\n", "busiest over mean", busiest_over_mean);
  AppendLatency("route", route, &out);
  AppendLatency("lookup", lookup, &out);
  AppendLatency("get", get, &out);
  AppendLatency("put", put, &out);
  absl::StrAppendFormat(&out, "  %-24s %14.1f s\n", "elapsed", absl::ToDoubleSeconds(elapsed));
  return out;
}

std::string ReplayReport::ToJson() const {
  nlohmann::ordered_json json;
  json["requests"] = requests;
  json["empty_requests"] = empty_requests;
  json["failed_requests"] = failed_requests;
  json["wrong_bytes"] = wrong_bytes;
  json["mismatched_segments"] = mismatched_segments;
  json["tokens_looked_up"] = tokens_looked_up;
  json["hit_rate_tokens"] = hit_rate_tokens();
  json["ideal_hit_rate_tokens"] = ideal_hit_rate_tokens();
  json["lru_hit_rate_tokens"] = lru_hit_rate_tokens();
  json["hit_blocks"] = hit_blocks;
  json["ideal_hit_blocks"] = ideal_hit_blocks;
  json["lru_hit_blocks"] = lru_hit_blocks;
  json["lru_capacity_blocks"] = lru_capacity_blocks;
  json["hit_blocks_device"] = hit_blocks_device;
  json["hit_blocks_host"] = hit_blocks_host;
  json["hit_blocks_disk"] = hit_blocks_disk;
  json["shared_requests"] = shared_requests;
  json["own_scope_requests"] = own_scope_requests;
  json["hit_blocks_public"] = hit_blocks_public;
  json["stored_blocks"] = stored_blocks;
  json["stampede_computations"] = stampede_computations;
  json["fallbacks"] = fallbacks;
  json["uncached_requests"] = uncached_requests;
  json["busiest_over_mean"] = busiest_over_mean;
  AddLatency("route", route, &json);
  AddLatency("lookup", lookup, &json);
  AddLatency("get", get, &json);
  AddLatency("put", put, &json);
  json["elapsed_s"] = absl::ToDoubleSeconds(elapsed);
  return json.dump(1) + "\n";
}

absl::Status ReplayReport::CheckPath(const std::string& path) {
  errno = 0;
  return std::ofstream(path, std::ios::app).is_open() ? absl::OkStatus() : CannotWrite(path);
}

absl::Status ReplayReport::WriteJson(const std::string& path) const {
  errno = 0;
  std::ofstream file(path, std::ios::trunc);
  if (!file.is_open()) return CannotWrite(path);
  file << ToJson();
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cannot write all of ", path, ": ", Reason()));
}

double BusiestOverMean(absl::Span<const uint64_t> tokens_by_replica) {
  double sum = 0;
  double busiest = 0;
  for (const uint64_t tokens : tokens_by_replica) {
    sum += static_cast<double>(tokens);
    busiest = std::max(busiest, static_cast<double>(tokens));
  }
  return sum == 0 ? 0 : busiest * static_cast<double>(tokens_by_replica.size()) / sum;
}

}  // namespace cairn::replay
