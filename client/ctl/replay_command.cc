// cairnctl replay: sends a trace's requests through a cluster as model workers would, and reports.
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/prompt_explainer.h"
#include "client/ctl/usage_error.h"
#include "client/replay/cache_oracles.h"
#include "client/replay/generated_trace.h"
#include "client/replay/open_trace.h"
#include "client/replay/replay_runner.h"
#include "client/replay/stampede_trace.h"
#include "common/base/hex.h"
#include "common/rpc/caller_identity.h"
#include "common/security/public_prefixes.h"

namespace cairn::ctl {
namespace {

using replay::ReplayOptions;
using replay::ReplayReport;
using replay::TraceReader;

template <typename Number>
absl::Status ParseCount(const CommandLine& line, absl::string_view flag, Number* out) {
  if (absl::SimpleAtoi(line.Get(flag), out)) return absl::OkStatus();
  return UsageError(absl::StrCat("--", flag, ": '", line.Get(flag), "' is no whole number of 0 to ",
                                 std::numeric_limits<Number>::max()));
}

absl::Status ParseReal(const CommandLine& line, absl::string_view flag, double* out) {
  if (absl::SimpleAtod(line.Get(flag), out)) return absl::OkStatus();
  return UsageError(absl::StrCat("--", flag, ": '", line.Get(flag), "' is no number"));
}

absl::StatusOr<ReplayOptions> ReadOptions(const CommandLine& line) {
  ReplayOptions options;
  options.tenant = line.Get("tenant");
  absl::Status status = ParseCount(line, "workers", &options.workers);
  status.Update(ParseReal(line, "rate", &options.rate));
  status.Update(ParseReal(line, "compute-tokens-per-second", &options.compute_tokens_per_second));
  status.Update(ParseCount(line, "block-bytes", &options.block_bytes));
  status.Update(ParseCount(line, "block-tokens", &options.block_tokens));
  status.Update(ParseCount(line, "lru-blocks", &options.lru_blocks));
  status.Update(ParseCount(line, "requests", &options.requests_max));
  status.Update(ParseCount(line, "public-tokens", &options.public_tokens));
  // All of them at once.
  if (line.Given("stampede") && !line.Given("workers")) {
    status.Update(ParseCount(line, "stampede", &options.workers));
  }
  uint32_t wait_ms = 0;
  status.Update(ParseCount(line, "wait-for-writers-ms", &wait_ms));
  options.worker.read.wait_for_writers = absl::Milliseconds(wait_ms);
  if (!status.ok()) return status;
  status = replay::ValidateReplayOptions(options);
  if (!status.ok()) return UsageError(status.message());
  return options;
}

absl::StatusOr<std::unique_ptr<TraceReader>> OpenTraceOf(const CommandLine& line,
                                                         const ReplayOptions& options) {
  if (line.Given("trace")) return replay::OpenTrace(line.Get("trace"));
  if (line.Given("stampede")) {
    replay::StampedeOptions stampede;
    absl::Status status = ParseCount(line, "stampede", &stampede.requests);
    status.Update(ParseCount(line, "stampede-tokens", &stampede.prompt_tokens));
    status.Update(ParseCount(line, "seed", &stampede.seed));
    if (!status.ok()) return status;
    return replay::StampedeTrace::Make(stampede);
  }
  replay::GeneratedTraceOptions generated;
  if (absl::Status status = ParseCount(line, "seed", &generated.seed); !status.ok()) return status;
  if (options.requests_max > 0) generated.requests = options.requests_max;
  if (line.Given("explain")) ++generated.requests;  // The one that is explained.
  const absl::StatusOr<uint32_t> timestamp =
      ParseNumber(line, "timestamp-tokens", replay::GeneratedTrace::kTimestampTokensMax);
  if (!timestamp.ok()) return timestamp.status();
  generated.timestamp_tokens = *timestamp;
  return replay::GeneratedTrace::Make(generated);
}

// What the trace asks of a cluster; asks none.
absl::Status Plan(const CommandLine& line, const ReplayOptions& options, TraceReader* trace,
                  const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> name_space = replay::NamespaceOfReplay(options, *trace);
  if (!name_space.ok()) return name_space.status();
  replay::CacheOracles oracles(name_space->block_tokens(), options.lru_blocks);
  uint64_t requests = 0;
  absl::btree_set<BlockKey> prefixes;
  while (options.requests_max == 0 || requests < options.requests_max) {
    const absl::StatusOr<std::optional<replay::TraceRequest>> next = trace->Next();
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    const absl::Status status = oracles.Observe((*next)->prompt).status();
    if (!status.ok()) return status;
    ++requests;
    if (options.public_tokens == 0 || prefixes.size() >= kPublicPrefixesMax) continue;
    const absl::StatusOr<std::vector<BlockKey>> ends =
        replay::PublicEndsOf(options, *name_space, **next);
    if (!ends.ok()) return ends.status();
    prefixes.insert(ends->begin(), ends->end());
  }
  nlohmann::ordered_json result = {
      {"requests", requests},
      {"empty_requests", trace->empty_requests()},
      {"prompt_tokens", oracles.prompt_tokens()},
      {"block_tokens", name_space->block_tokens()},
      {"block_bytes", name_space->block_bytes()},
      {"full_blocks", oracles.full_blocks()},
      {"distinct_blocks", oracles.distinct_blocks()},
      {"distinct_bytes", oracles.distinct_blocks() * name_space->block_bytes()},
      {"ideal_hit_blocks", oracles.ideal_hit_blocks()},
      {"lru_hit_blocks", oracles.lru_hit_blocks()}};
  // As many as a node lists.
  if (options.public_tokens > 0) result["public_prefixes"] = nlohmann::ordered_json::array();
  for (const BlockKey& key : prefixes) result["public_prefixes"].push_back(ToHex(key.view()));
  return Print(line, result, streams.out);
}

// Nodes that are gone are to be noticed soon: there is another in the list.
ClientOptions NodeOptions() {
  ClientOptions options;
  options.control_timeout = absl::Seconds(2);
  options.data_timeout = absl::Seconds(10);
  options.retry.attempts_max = 2;
  return options;
}

absl::Status Verdict(const ReplayReport& report, const absl::Status& first_failure) {
  if (report.failed_requests > 0) {
    return absl::InternalError(absl::StrCat(report.failed_requests, " requests failed, the first ",
                                            "with: ", TextOf(first_failure)));
  }
  if (report.wrong_bytes > 0) {
    return absl::DataLossError(absl::StrCat(
        report.wrong_bytes, " bytes were delivered that are not what was computed for them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ReplayReport> RunReplay(const CommandLine& line, const ReplayOptions& options,
                                       TraceReader* trace, const Streams& streams,
                                       absl::Status* verdict) {
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> security = OpenSecurity(line);
  if (!security.ok()) return security.status();
  SystemClientParts parts;
  ClientOptions node_options = NodeOptions();
  node_options.channel.tls_name = line.Get("tls-name");
  node_options.credentials = (*security)->credentials();
  node_options.metadata = (*security)->metadata();
  NodeClients nodes(node_options, parts.parts());
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> public_security =
      OpenSecurityFor(line, kPublicTenant);
  if (!public_security.ok()) return public_security.status();
  ClientOptions public_options = node_options;
  public_options.metadata = (*public_security)->metadata();
  NodeClients public_nodes(public_options, parts.parts());
  std::optional<RouterClient> router;
  if (!line.Given("node")) {
    RouterClientOptions router_options;
    router_options.target = line.Get("router");
    router_options.channel = node_options.channel;
    router_options.credentials = node_options.credentials;
    router_options.metadata = node_options.metadata;
    if (absl::Status status = ValidateRouterClientOptions(router_options); !status.ok()) {
      return UsageError(absl::StrCat("--router: ", status.message()));
    }
    router.emplace(router_options, parts.parts());
  }
  StoppableWait wait;
  replay::ReplayRunner runner(options,
                              {.router = router ? &*router : nullptr,
                               .node_address = line.Get("node"),
                               .nodes = &nodes,
                               .public_nodes = line.Given("publish") ? &public_nodes : nullptr},
                              &wait, streams.err);
  absl::StatusOr<ReplayReport> report = runner.Run(trace);
  if (!report.ok()) return report;
  *verdict = Verdict(*report, runner.first_failure());
  if (!runner.first_cache_failure().ok() && streams.err != nullptr) {
    *streams.err << "the cache failed at least once, which was a miss: "
                 << TextOf(runner.first_cache_failure()) << "\n";
  }
  return report;
}

// Of the request that would come next.
absl::Status ExplainNext(const CommandLine& line, const ReplayOptions& options, TraceReader* trace,
                         const Streams& streams) {
  const absl::StatusOr<NamespaceHandle> name_space = replay::NamespaceOfReplay(options, *trace);
  if (!name_space.ok()) return name_space.status();
  const absl::StatusOr<std::optional<replay::TraceRequest>> next = trace->Next();
  if (!next.ok()) return next.status();
  if (!next->has_value()) {
    return UsageError("--explain: the trace has no further request; --requests ends it sooner");
  }
  const std::vector<uint32_t> tokens = (*next)->prompt.Tokens();
  const Region region = {.scope = {.tenant = options.tenant, .adapter = "", .salt = ""},
                         .tokens = tokens,
                         .external_ids = {}};
  SystemClientParts parts;
  const absl::StatusOr<Prompt> prompt =
      Prompt::Make(*parts.parts().hasher, *name_space, {&region, 1});
  if (!prompt.ok()) return prompt.status();
  *streams.out << "\nThe next request: ";
  return ExplainMiss(line, *name_space, *prompt, streams.out);
}

// What would be of no account is refused.
absl::Status CheckTogether(const CommandLine& line) {
  if (line.Given("trace") && line.Given("seed")) {
    return UsageError("--seed: of generated requests, and --trace gives those of a file");
  }
  if (line.Given("trace") && line.Given("stampede")) {
    return UsageError(
        "--stampede: requests for a made-up prompt, and --trace gives those of a file");
  }
  if (line.Given("stampede-tokens") && !line.Given("stampede")) {
    return UsageError("--stampede-tokens: of no account without --stampede");
  }
  if (line.Given("publish") && !line.Given("public-tokens")) {
    return UsageError("--publish: of no account without --public-tokens");
  }
  if (line.Given("explain") &&
      (line.Given("stampede") || line.Given("public-tokens") || line.Get("output") != "text")) {
    return UsageError("--explain: not with --stampede, --public-tokens, or another --output");
  }
  if (line.Given("timestamp-tokens") && (line.Given("trace") || line.Given("stampede"))) {
    return UsageError("--timestamp-tokens: of generated requests");
  }
  if (!line.Given("plan")) return absl::OkStatus();
  for (const char* flag :
       {"router", "node", "workers", "rate", "compute-tokens-per-second", "json", "tls-ca",
        "tls-cert", "tls-key", "tls-name", "token-file", "as", "publish", "explain"}) {
    if (!line.Given(flag)) continue;
    return UsageError(absl::StrCat("--", flag, ": of no account with --plan, which asks none"));
  }
  return absl::OkStatus();
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  if (line.Given("node") && line.Given("router")) {
    return UsageError("--node and --router: a replay goes to one of them");
  }
  if (absl::Status status = CheckTogether(line); !status.ok()) return status;
  const std::string& output = line.Get("output");
  if (output != "text" && output != "json") {
    return UsageError(absl::StrCat("--output: '", output, "' is neither text nor json"));
  }
  absl::StatusOr<ReplayOptions> options = ReadOptions(line);
  if (!options.ok()) return options.status();
  // The one after them is left to be explained.
  if (line.Given("explain") && !line.Given("trace") && options->requests_max == 0) {
    options->requests_max = replay::GeneratedTraceOptions().requests;
  }
  const absl::StatusOr<std::unique_ptr<TraceReader>> trace = OpenTraceOf(line, *options);
  if (!trace.ok()) return trace.status();
  if (line.Given("plan")) return Plan(line, *options, trace->get(), streams);
  if (line.Given("json")) {
    if (absl::Status status = ReplayReport::CheckPath(line.Get("json")); !status.ok()) {
      return status;
    }
  }
  absl::Status verdict;
  const absl::StatusOr<ReplayReport> report =
      RunReplay(line, *options, trace->get(), streams, &verdict);
  if (!report.ok()) return report.status();
  *streams.out << (output == "json" ? report->ToJson() : report->ToTable());
  if (line.Given("json")) {
    if (absl::Status status = report->WriteJson(line.Get("json")); !status.ok()) return status;
  }
  if (!verdict.ok() || !line.Given("explain")) return verdict;
  return ExplainNext(line, *options, trace->get(), streams);
}

}  // namespace

Command ReplayCommand() {
  return {
      .name = "replay",
      .summary = "sends the requests of a trace through a cluster, as model workers would",
      .flags = WithCommonFlags(
          {{"trace", "FILE", "", "requests to replay; without it they are generated"},
           {"requests", "N", "0", "ends after so many; 0: with the trace, or 2000 generated ones"},
           {"seed", "N", "1", "of generated requests"},
           {"timestamp-tokens", "N", "0",
            "generated prompts begin with 5 equal tokens and so many that no other one has"},
           {"explain", "", "", "says afterwards why the next request would miss"},
           {"router", "HOST:PORT,...", "127.0.0.1:7080",
            "the router to ask for each request, or several alike"},
           {"node", "HOST:PORT", "", "one cache node, without a router"},
           {"tenant", "NAME", "public", "whose blocks they are"},
           {"public-tokens", "N", "0",
            "so many at the start of longer prompts are public; --plan prints the keys for a list"},
           {"publish", "", "", "write what of them is missing, acting for the tenant public"},
           {"workers", "N", "16", "requests at once"},
           {"stampede", "N", "64",
            "instead of generated requests N for one new prompt, by N workers at once"},
           {"stampede-tokens", "N", "8192", "tokens of that prompt"},
           {"wait-for-writers-ms", "N", "1000",
            "longest wait of a request for blocks that another one is computing"},
           {"rate", "X", "0", "follow the trace's times, X times faster; 0: as fast as it goes"},
           {"compute-tokens-per-second", "X", "0",
            "of each model worker; 0: computing takes no time"},
           {"block-bytes", "N", "4096", "bytes of one block"},
           {"block-tokens", "N", "0", "tokens of one block; 0: as the trace has them, or 16"},
           {"lru-blocks", "N", "0", "size of the LRU to compare with; 0: that of all nodes"},
           {"json", "FILE", "", "also write the report there, as one flat object"},
           {"plan", "", "", "only say what the trace asks of a cluster; asks none"}},
          /*asks_node=*/false),
      .run = Run};
}

}  // namespace cairn::ctl
