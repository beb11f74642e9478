// cairnctl keys: the keys of a prompt, computed without a node.
#include <nlohmann/json.hpp>

#include "client/ctl/command.h"
#include "client/ctl/inputs.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

absl::StatusOr<std::vector<BlockKey>> KeysOf(const JsonReader& json) {
  const absl::StatusOr<JsonReader> fields = json.Field("namespace");
  if (!fields.ok()) return fields.status();
  const absl::StatusOr<Namespace> name_space = NamespaceFromJson(*fields);
  if (!name_space.ok()) return name_space.status();
  const absl::StatusOr<PromptInput> prompt = PromptFromJson(json);
  if (!prompt.ok()) return prompt.status();
  const absl::StatusOr<KeyRules> rules = KeyRulesOf(*name_space);
  if (!rules.ok()) return rules.status();
  return PromptKeys(Sha256BlockHasher(), *rules, prompt->Regions(), prompt->extras);
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<std::string> text = ReadInput(line.Get("input"), streams.in);
  if (!text.ok()) return text.status();
  const absl::StatusOr<nlohmann::json> document = ParseJson(*text, line.Get("input"));
  if (!document.ok()) return document.status();
  const absl::StatusOr<std::vector<BlockKey>> keys = KeysOf(JsonReader(&*document, ""));
  if (!keys.ok()) return keys.status();
  nlohmann::ordered_json result;
  result["keys_hex"] = nlohmann::ordered_json::array();
  for (const BlockKey& key : *keys) result["keys_hex"].push_back(ToHex(key.view()));
  return Print(line, result, streams.out);
}

}  // namespace

Command KeysCommand() {
  return {
      .name = "keys",
      .summary = "computes the block keys of a prompt; asks no node",
      .flags = WithCommonFlags(
          {{"input", "FILE", "-",
            "{\"namespace\": ..., \"regions\": [{\"scope\": ..., \"tokens\": [...]}]} as JSON; - "
            "reads standard input"}},
          /*asks_node=*/false),
      .run = Run};
}

}  // namespace cairn::ctl
