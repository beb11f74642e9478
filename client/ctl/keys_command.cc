// cairnctl keys: the keys of a prompt, computed without a node; or the lines that a node's list of
// public prefixes holds for it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cpp/reserve_call.h"
#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

struct Input {
  Namespace name_space;
  PromptInput prompt;
};

absl::StatusOr<Input> ReadDocument(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<std::string> text = ReadInput(line.Get("input"), streams.in);
  if (!text.ok()) return text.status();
  const absl::StatusOr<nlohmann::json> document = ParseJson(*text, line.Get("input"));
  if (!document.ok()) return document.status();
  const JsonReader json(&*document, "");
  const absl::StatusOr<JsonReader> fields = json.Field("namespace");
  if (!fields.ok()) return fields.status();
  absl::StatusOr<Namespace> name_space = NamespaceFromJson(*fields);
  if (!name_space.ok()) return name_space.status();
  absl::StatusOr<PromptInput> prompt = PromptFromJson(json);
  if (!prompt.ok()) return prompt.status();
  return Input{*std::move(name_space), *std::move(prompt)};
}

absl::StatusOr<Input> ReadFlags(const CommandLine& line, const Streams& streams) {
  absl::StatusOr<Namespace> name_space = ReadNamespace(line);
  if (!name_space.ok()) return name_space.status();
  absl::StatusOr<PromptInput> prompt = ReadPrompt(line, streams);
  if (!prompt.ok()) return prompt.status();
  return Input{*std::move(name_space), *std::move(prompt)};
}

absl::StatusOr<Input> ReadEither(const CommandLine& line, const Streams& streams) {
  std::vector<FlagSpec> flags = PromptFlags();
  flags.push_back(NamespaceFlag());
  const auto given = std::find_if(flags.begin(), flags.end(),
                                  [&line](const FlagSpec& flag) { return line.Given(flag.name); });
  if (given == flags.end()) return ReadDocument(line, streams);
  if (!line.Given("input")) return ReadFlags(line, streams);
  return UsageError(absl::StrCat("--input and --", given->name, " exclude each other"));
}

// One a line, and nothing else: the output is added to a file.
absl::Status PrintPublic(const CommandLine& line, const Input& input, std::ostream* out) {
  if (line.Given("output")) return UsageError("--public prints lines; --output is of no account");
  const absl::StatusOr<NamespaceHandle> handle = NamespaceHandle::Make("", input.name_space);
  if (!handle.ok()) return handle.status();
  const absl::StatusOr<Prompt> prompt =
      Prompt::Make(Sha256BlockHasher(), *handle, input.prompt.Regions(), input.prompt.extras);
  if (!prompt.ok()) return prompt.status();
  const std::vector<BlockKey> ends = PublicEndsOf(*handle, *prompt);
  if (ends.empty()) {
    return absl::InvalidArgumentError(
        "the prompt has no full block of the tenant public, so there is nothing to list");
  }
  for (const BlockKey& key : ends) *out << ToHex(key.view()) << "\n";
  return absl::OkStatus();
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<Input> input = ReadEither(line, streams);
  if (!input.ok()) return input.status();
  if (line.Given("public")) return PrintPublic(line, *input, streams.out);
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(input->name_space);
  if (!rules.ok()) return rules.status();
  const absl::StatusOr<std::vector<BlockKey>> keys =
      PromptKeys(Sha256BlockHasher(), *rules, input->prompt.Regions(), input->prompt.extras);
  if (!keys.ok()) return keys.status();
  nlohmann::ordered_json result;
  result["keys_hex"] = nlohmann::ordered_json::array();
  for (const BlockKey& key : *keys) result["keys_hex"].push_back(ToHex(key.view()));
  return Print(line, result, streams.out);
}

}  // namespace

Command KeysCommand() {
  std::vector<FlagSpec> flags = {{"input", "FILE", "-",
                                  "{\"namespace\": ..., \"regions\": [{\"scope\": ..., \"tokens\": "
                                  "[...]}]} as JSON, where none of the flags below is given; - "
                                  "reads standard input"},
                                 NamespaceFlag()};
  for (const FlagSpec& flag : PromptFlags()) flags.push_back(flag);
  flags.push_back(
      {"public", "", "", "only what a node's --public-prefix-file is to hold for it, a line each"});
  return {.name = "keys",
          .summary = "computes the block keys of a prompt; asks no node",
          .flags = WithCommonFlags(flags, /*asks_node=*/false),
          .run = Run};
}

}  // namespace cairn::ctl
