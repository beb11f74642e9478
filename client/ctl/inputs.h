// What several commands read from flags and files: the node, the namespace, the prompt.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/cache_node_client.h"
#include "client/ctl/command.h"
#include "client/ctl/identity_json.h"
#include "common/rpc/caller_identity.h"
#include "common/security/client_security.h"

namespace cairn::ctl {

// Files larger than this are refused.
inline constexpr size_t kInputBytesMax = size_t{256} << 20;

// The file's content; `-` reads the stream.
absl::StatusOr<std::string> ReadInput(const std::string& path, std::istream* in);

// Prints a result in the format of --output: JSON, or one "name: value" a line. A usage error when
// the format is neither.
absl::Status Print(const CommandLine& line, const nlohmann::ordered_json& result,
                   std::ostream* out);

// --namespace FILE, or the example that is built in (example_namespace.json).
FlagSpec NamespaceFlag();
absl::StatusOr<Namespace> ReadNamespace(const CommandLine& line);
// The namespace with all that follows from it; asks nobody.
absl::StatusOr<NamespaceHandle> ReadHandle(const CommandLine& line);

// --tenant, --adapter, --salt-hex.
std::vector<FlagSpec> ScopeFlags();
absl::StatusOr<Scope> ReadScope(const CommandLine& line);

// --tokens with the scope's flags, or --prompt FILE.
std::vector<FlagSpec> PromptFlags();
absl::StatusOr<PromptInput> ReadPrompt(const CommandLine& line, const Streams& streams);

// A whole number of the flag, at most `max`; a usage error for anything else.
absl::StatusOr<uint32_t> ParseNumber(const CommandLine& line, absl::string_view flag, uint32_t max);

// A duration of the flag, as in 90s or 30m, above zero; zero when the flag is not given.
absl::StatusOr<absl::Duration> ParseKeepTime(const CommandLine& line, absl::string_view flag);

// "1,2,3", "0..63" (both ends), or a list of such. A usage error for anything else.
absl::StatusOr<std::vector<uint32_t>> ParseTokens(const std::string& text);

// --tls-ca, --tls-cert, --tls-key, --tls-name, --token-file, --as: WithCommonFlags adds them to
// commands that ask somebody. Acted for is the tenant of --as, else that of --tenant, where it is
// given; but what only reads (`use`) needs not act for `public` to read that.
std::vector<FlagSpec> SecurityFlags();
absl::StatusOr<std::unique_ptr<ClientSecurity>> OpenSecurity(const CommandLine& line,
                                                             TenantUse use = TenantUse::kWrite);
// The same, acting for this tenant; empty: the caller's only one.
absl::StatusOr<std::unique_ptr<ClientSecurity>> OpenSecurityFor(const CommandLine& line,
                                                                const std::string& tenant);

// A client of one node, and what it borrows.
class NodeSession {
 public:
  // Of the node of --node.
  explicit NodeSession(const CommandLine& line, TenantUse use = TenantUse::kWrite)
      : NodeSession(line, line.Get("node"), use) {}
  NodeSession(const CommandLine& line, const std::string& target,
              TenantUse use = TenantUse::kWrite);
  // Not OK when the flags about security are wrong; the client is of no use then.
  const absl::Status& status() const { return security_.status(); }
  CacheNodeClient& client() { return client_; }
  CacheNodeClient* operator->() { return &client_; }

 private:
  const absl::StatusOr<std::unique_ptr<ClientSecurity>> security_;
  SystemClientParts parts_;
  CacheNodeClient client_;
};

}  // namespace cairn::ctl
