// cairnctl decode-demo: a model decodes over the KV of nodes, and what that moves.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/ctl/command.h"
#include "client/ctl/decode_demo.h"
#include "client/ctl/each_node.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kPromptTokensMost = 1 << 16;
constexpr uint32_t kNewTokensMost = 4096;
constexpr size_t kNodesMost = 16;

constexpr char kDetails[] =
    "A model with weights from a seed stands in for an LLM. Worker 1 computes a prompt by itself\n"
    "and puts its full blocks on every node of --node. Worker 2 has none of that KV: for each\n"
    "layer of each token it sends its query to the nodes, which attend over the blocks they hold\n"
    "(several nodes a part each, at once), and merges what they answer. Its tokens must be those "
    "of\n"
    "worker 1 going on alone; exit code 1 where they are not.\n"
    "\n"
    "What to look at: `moved_bytes` against `fetch_bytes`, which bringing the prefix to worker 2\n"
    "would have moved. The longer the prompt and the shorter the answer, the better serving does:\n"
    "\n"
    "  cairn-node --insecure --node-id=a --decode-memory=256MiB &\n"
    "  cairnctl decode-demo\n"
    "  cairnctl decode-demo --prompt-tokens 4096 --new-tokens 16\n"
    "  cairnctl decode-demo --node 127.0.0.1:7070,127.0.0.1:7170 --json\n"
    "\n"
    "A node that was started with --decode-streams-max and no --decode-memory keeps no sequences;\n"
    "worker 2 then leases the prefix and keeps what is new itself, and the demo says so.\n";

absl::StatusOr<WayChoice> ReadWay(const CommandLine& line) {
  const std::string& way = line.Get("way");
  if (way == "serve") return WayChoice::kServe;
  if (way == "fetch") return WayChoice::kFetch;
  if (way == "cost") return WayChoice::kByCost;
  return UsageError(absl::StrCat("--way: '", way, "'; must be serve, fetch or cost"));
}

absl::StatusOr<DecodeDemoOptions> ReadOptions(const CommandLine& line) {
  DecodeDemoOptions options;
  options.tenant = line.Get("tenant");
  const struct {
    const char* flag;
    uint32_t least, most;
    uint32_t* value;
  } numbers[] = {{"prompt-tokens", 1, kPromptTokensMost, &options.prompt_tokens},
                 {"new-tokens", 1, kNewTokensMost, &options.new_tokens},
                 {"block-tokens", 1, kBlockTokensMax, &options.block_tokens}};
  for (const auto& number : numbers) {
    const absl::StatusOr<uint32_t> read = ParseNumber(line, number.flag, number.most);
    if (!read.ok()) return read.status();
    if (*read < number.least) {
      return UsageError(absl::StrCat("--", number.flag, ": must be at least ", number.least));
    }
    *number.value = *read;
  }
  if (options.prompt_tokens < options.block_tokens) {
    return UsageError(absl::StrCat("--prompt-tokens: ", options.prompt_tokens,
                                   " tokens have no full block of ", options.block_tokens));
  }
  const absl::StatusOr<uint32_t> seed = ParseNumber(line, "seed", UINT32_MAX);
  if (!seed.ok()) return seed.status();
  options.seed = *seed;
  const absl::StatusOr<WayChoice> way = ReadWay(line);
  if (!way.ok()) return way.status();
  options.way = *way;
  return options;
}

absl::StatusOr<std::vector<ClientOptions>> ReadNodes(const CommandLine& line,
                                                     const ClientSecurity& security) {
  const std::vector<std::string> targets = absl::StrSplit(line.Get("node"), ',');
  if (targets.size() > kNodesMost) {
    return UsageError(absl::StrCat("--node: ", targets.size(), " nodes; at most ", kNodesMost));
  }
  std::vector<ClientOptions> nodes;
  for (const std::string& target : targets) {
    if (target.empty()) {
      return UsageError(absl::StrCat("--node: '", line.Get("node"), "' names an empty node"));
    }
    ClientOptions options;
    options.target = target;
    options.channel.tls_name = line.Get("tls-name");
    options.credentials = security.credentials();
    options.metadata = security.metadata();
    nodes.push_back(options);
  }
  return nodes;
}

Json JsonOf(const DecodeDemoOptions& options, const DecodeDemoReport& report) {
  const SessionCounters& session = report.session;
  Json json = {
      {"prompt_tokens", options.prompt_tokens},
      {"new_tokens", options.new_tokens},
      {"seed", options.seed},
      {"blocks", report.blocks},
      {"block_bytes", report.block_bytes},
      {"blocks_put", report.blocks_put},
      {"held_as", report.form},
      {"places", report.places},
      {"tokens_per_second", report.tokens_per_second},
      {"alone_tokens_per_second", report.alone_tokens_per_second},
      {"bytes_sent", session.bytes_sent},
      {"bytes_received", session.bytes_received},
      {"moved_bytes", report.MovedBytes()},
      {"fetch_bytes", report.FetchBytes()},
      {"fetch_over_moved", static_cast<double>(report.FetchBytes()) /
                               static_cast<double>(std::max<uint64_t>(report.MovedBytes(), 1))},
      {"round_trips", session.round_trips},
      {"requests", session.requests},
      {"retries", session.retries},
      {"parts_moved", session.parts_moved},
      {"recomputed_tokens", report.recomputed_tokens},
      {"by_cost", NameOf(report.cost.way)},
      {"cost", report.cost.why}};
  if (report.cost.break_even_new_tokens) {
    json["break_even_new_tokens"] = *report.cost.break_even_new_tokens;
  }
  if (!report.why.empty()) json["no_sequences"] = report.why;
  json["tokens_equal"] = !report.FirstDifference().has_value();
  json["tokens"] = report.tokens;
  return json;
}

absl::Status Verdict(const DecodeDemoReport& report) {
  const std::optional<size_t> at = report.FirstDifference();
  if (!at) return absl::OkStatus();
  if (*at >= report.tokens.size() || *at >= report.tokens_alone.size()) {
    return absl::DataLossError(absl::StrCat("worker 2 has ", report.tokens.size(), " tokens, ",
                                            "worker 1 alone ", report.tokens_alone.size()));
  }
  return absl::DataLossError(absl::StrCat("new token ", *at, " is ", report.tokens[*at],
                                          ", where worker 1 alone has ", report.tokens_alone[*at]));
}

absl::Status Print(const CommandLine& line, const Json& json, const Streams& streams) {
  if (!line.Given("json")) return ctl::Print(line, json, streams.out);
  *streams.out << json.dump() << "\n";
  return absl::OkStatus();
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const std::string& output = line.Get("output");
  if (output != "text" && output != "json") {
    return UsageError(absl::StrCat("--output: '", output, "'; must be text or json"));
  }
  const absl::StatusOr<DecodeDemoOptions> options = ReadOptions(line);
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> security = OpenSecurity(line);
  if (!security.ok()) return security.status();
  const absl::StatusOr<std::vector<ClientOptions>> nodes = ReadNodes(line, **security);
  if (!nodes.ok()) return nodes.status();
  SystemClientParts parts;
  DecodeDemo demo(*options, *nodes, parts.parts(), [&](const std::string& said) {
    if (streams.err != nullptr) *streams.err << said << std::endl;
  });
  const absl::StatusOr<DecodeDemoReport> report = demo.Run();
  if (!report.ok()) return report.status();
  const absl::Status status = Print(line, JsonOf(*options, *report), streams);
  if (!status.ok()) return status;
  return Verdict(*report);
}

}  // namespace

Command DecodeDemoCommand() {
  std::vector<FlagSpec> flags = {
      NodeListFlag(),
      {"prompt-tokens", "N", "1024", "tokens of the prompt that worker 1 computes"},
      {"new-tokens", "N", "48", "tokens that worker 2 decodes"},
      {"block-tokens", "N", "16", "tokens of one block"},
      {"seed", "N", "1", "of the model's weights and the prompt"},
      {"way", "WAY", "serve",
       "serve: send queries; fetch: bring the blocks; cost: what is faster, as measured"},
      {"tenant", "NAME", "public", "whose blocks they are"},
      {"json", "", "", "one line of JSON; the same as --output json"}};
  return {.name = "decode-demo",
          .summary = "a model decodes over the KV that nodes hold; what that moves",
          .flags = WithCommonFlags(std::move(flags), /*asks_node=*/false),
          .run = Run,
          .details = kDetails};
}

}  // namespace cairn::ctl
