// cairnctl retire: fences a namespace off for good.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/each_node.h"
#include "client/ctl/inputs.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

// Nothing is retired by default: what goes is said.
absl::StatusOr<Fingerprint> Which(const CommandLine& line) {
  if (line.Given("fingerprint") == line.Given("namespace")) {
    return UsageError("give one of --fingerprint HEX and --namespace FILE: what is to be retired");
  }
  if (line.Given("namespace")) {
    const absl::StatusOr<NamespaceHandle> handle = ReadHandle(line);
    if (!handle.ok()) return handle.status();
    return handle->fingerprint();
  }
  const absl::StatusOr<std::string> bytes = FromHex(line.Get("fingerprint"));
  const std::optional<Fingerprint> fingerprint =
      bytes.ok() ? Fingerprint::FromBytes(*bytes) : std::nullopt;
  if (!fingerprint) {
    return UsageError(absl::StrCat("--fingerprint: '", line.Get("fingerprint"), "'; must be ",
                                   2 * kFingerprintBytes, " hexadecimal digits"));
  }
  return *fingerprint;
}

absl::Status Run(const CommandLine& line, const Streams& streams) {
  const absl::StatusOr<Fingerprint> fingerprint = Which(line);
  if (!fingerprint.ok()) return fingerprint.status();
  return AskEachNode(line, streams, [&](CacheNodeClient& node) -> absl::StatusOr<Json> {
    const absl::StatusOr<v1::RetireNamespaceResponse> retired = node.RetireNamespace(*fingerprint);
    if (!retired.ok()) return retired.status();
    return Json{{"fingerprint_hex", ToHex(fingerprint->view())},
                {"epoch", retired->epoch()},
                {"blocks_removed", retired->blocks()},
                {"pinned_bytes", retired->pinned_bytes()},
                {"done", retired->done()}};
  });
}

}  // namespace

Command RetireCommand() {
  FlagSpec name_space = NamespaceFlag();
  name_space.help = "namespace to retire, as JSON";
  return {
      .name = "retire",
      .summary = "fences a namespace on each node given: none of its bytes is answered any more",
      .flags =
          WithCommonFlags({{"fingerprint", "HEX", "", "fingerprint of the namespace to retire"},
                           name_space,
                           NodeListFlag()},
                          /*asks_node=*/false),
      .run = Run};
}

}  // namespace cairn::ctl
