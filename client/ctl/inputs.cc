#include "client/ctl/inputs.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/example_namespace.h"
#include "client/ctl/usage_error.h"
#include "common/base/hex.h"
#include "common/rpc/caller_identity.h"

namespace cairn::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kKeepTimeMax = absl::Hours(24 * 366 * 100);

absl::StatusOr<std::string> ReadStream(std::istream* in, const std::string& name) {
  std::string text;
  char chunk[1 << 16];
  while (in->read(chunk, sizeof(chunk)) || in->gcount() > 0) {
    text.append(chunk, static_cast<size_t>(in->gcount()));
    if (text.size() > kInputBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": larger than ", kInputBytesMax, " bytes"));
    }
  }
  if (in->bad()) return absl::DataLossError(absl::StrCat(name, ": cannot be read to its end"));
  return text;
}

void PrintText(const Json& value, const std::string& name, std::ostream* out) {
  if (value.is_object()) {
    for (const auto& [field, one] : value.items()) {
      PrintText(one, name.empty() ? field : absl::StrCat(name, ".", field), out);
    }
  } else if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (size_t i = 0; i < value.size(); ++i) {
      PrintText(value[i], absl::StrCat(name, "[", i, "]"), out);
    }
  } else if (value.is_string()) {
    *out << name << ": " << value.get<std::string>() << "\n";
  } else {
    *out << name << ": " << value.dump() << "\n";
  }
}

absl::Status AddTokens(absl::string_view item, std::vector<uint32_t>* tokens) {
  constexpr size_t kTokensMax = kPromptTokensMax;
  const std::vector<std::string> ends = absl::StrSplit(item, absl::MaxSplits("..", 1));
  uint32_t first = 0;
  uint32_t last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
      last < first) {
    return UsageError(
        absl::StrCat("--tokens: '", item, "' is neither a token id nor a range as in 0..63"));
  }
  if (last - first >= kTokensMax - tokens->size()) {
    return UsageError(absl::StrCat("--tokens: more than ", kTokensMax, " tokens"));
  }
  for (uint64_t token = first; token <= last; ++token) {
    tokens->push_back(static_cast<uint32_t>(token));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path, std::istream* in) {
  if (path == "-") return ReadStream(in, "standard input");
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  return ReadStream(&file, path);
}

absl::Status Print(const CommandLine& line, const Json& result, std::ostream* out) {
  const std::string& format = line.Get("output");
  if (format == "json") {
    *out << result.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (format == "text") {
    PrintText(result, "", out);
  } else {
    return UsageError(absl::StrCat("--output: '", format, "'; must be text or json"));
  }
  return absl::OkStatus();
}

FlagSpec NamespaceFlag() {
  return {"namespace", "FILE", "",
          "namespace as JSON, in the form of client/ctl/example_namespace.json; without it, that "
          "example"};
}

absl::StatusOr<Namespace> ReadNamespace(const CommandLine& line) {
  std::string text = kExampleNamespaceJson;
  std::string name = "the built-in namespace";
  if (line.Given("namespace")) {
    name = line.Get("namespace");
    absl::StatusOr<std::string> read = ReadInput(name, nullptr);
    if (!read.ok()) return read.status();
    text = *std::move(read);
  }
  const absl::StatusOr<nlohmann::json> document = ParseJson(text, name);
  if (!document.ok()) return document.status();
  return NamespaceFromJson(JsonReader(&*document, "namespace"));
}

absl::StatusOr<NamespaceHandle> ReadHandle(const CommandLine& line) {
  const absl::StatusOr<Namespace> fields = ReadNamespace(line);
  if (!fields.ok()) return fields.status();
  return NamespaceHandle::Make("", *fields);
}

std::vector<FlagSpec> ScopeFlags() {
  return {{"tenant", "NAME", "public", "tenant of the scope"},
          {"adapter", "NAME", "", "adapter of the scope, as name@digest"},
          {"salt-hex", "HEX", "", "cache salt of the scope"}};
}

absl::StatusOr<Scope> ReadScope(const CommandLine& line) {
  absl::StatusOr<std::string> salt = FromHex(line.Get("salt-hex"));
  if (!salt.ok()) {
    return UsageError(absl::StrCat("--salt-hex: ", salt.status().message()));
  }
  return Scope{line.Get("tenant"), line.Get("adapter"), *std::move(salt)};
}

std::vector<FlagSpec> PromptFlags() {
  std::vector<FlagSpec> flags = ScopeFlags();
  flags.push_back({"tokens", "LIST", "0..63", "token ids, as in 1,2,3 or 0..63"});
  flags.push_back(
      {"prompt", "FILE", "",
       "a prompt as JSON ({\"regions\": [{\"scope\": {\"tenant\": \"acme\"}, \"tokens\": "
       "[1, 2]}]}) in place of --tokens and the scope; - reads standard input"});
  return flags;
}

absl::StatusOr<PromptInput> ReadPrompt(const CommandLine& line, const Streams& streams) {
  if (!line.Given("prompt")) {
    absl::StatusOr<Scope> scope = ReadScope(line);
    if (!scope.ok()) return scope.status();
    absl::StatusOr<std::vector<uint32_t>> tokens = ParseTokens(line.Get("tokens"));
    if (!tokens.ok()) return tokens.status();
    PromptInput prompt;
    prompt.regions.push_back({*std::move(scope), *std::move(tokens), {}});
    return prompt;
  }
  for (const char* flag : {"tokens", "tenant", "adapter", "salt-hex"}) {
    if (line.Given(flag)) {
      return UsageError(absl::StrCat(
          "--prompt and --", flag, " exclude each other: the regions in the file say it",
          flag == absl::string_view("tenant") ? "; --as says for whom you act" : ""));
    }
  }
  const absl::StatusOr<std::string> text = ReadInput(line.Get("prompt"), streams.in);
  if (!text.ok()) return text.status();
  const absl::StatusOr<nlohmann::json> document = ParseJson(*text, line.Get("prompt"));
  if (!document.ok()) return document.status();
  return PromptFromJson(JsonReader(&*document, ""));
}

absl::StatusOr<std::vector<uint32_t>> ParseTokens(const std::string& text) {
  std::vector<uint32_t> tokens;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    if (absl::Status status = AddTokens(item, &tokens); !status.ok()) return status;
  }
  return tokens;
}

absl::StatusOr<uint32_t> ParseNumber(const CommandLine& line, absl::string_view flag,
                                     uint32_t max) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(line.Get(flag), &number) && number <= max) return number;
  return UsageError(
      absl::StrCat("--", flag, ": '", line.Get(flag), "' is no whole number from 0 to ", max));
}

absl::StatusOr<absl::Duration> ParseKeepTime(const CommandLine& line, absl::string_view flag) {
  if (!line.Given(flag)) return absl::ZeroDuration();
  absl::Duration duration;
  if (absl::ParseDuration(line.Get(flag), &duration) && duration > absl::ZeroDuration() &&
      duration <= kKeepTimeMax) {
    return duration;
  }
  return UsageError(absl::StrCat("--", flag, ": '", line.Get(flag),
                                 "' is no time above zero and below 100 years, as in 90s or 30m"));
}

std::vector<FlagSpec> SecurityFlags() {
  return {{"tls-ca", "FILE", "", "CA of the servers' certificates; without it plain text"},
          {"tls-cert", "FILE", "", "own certificate, where servers ask for one"},
          {"tls-key", "FILE", "", "private key of --tls-cert"},
          {"tls-name", "NAME", "", "name that the servers' certificates have; else the host's"},
          {"token-file", "FILE", "", "file with the bearer token to send"},
          {"as", "NAME", "", "tenant to act for, of several, where it is not that of --tenant"}};
}

absl::StatusOr<std::unique_ptr<ClientSecurity>> OpenSecurity(const CommandLine& line,
                                                             TenantUse use) {
  if (line.Given("as")) return OpenSecurityFor(line, line.Get("as"));
  if (!line.Knows("tenant") || !line.Given("tenant")) return OpenSecurityFor(line, "");
  // Everybody may read what is public: it is not what the caller acts for.
  const bool reads_public = use == TenantUse::kRead && line.Get("tenant") == kPublicTenant;
  return OpenSecurityFor(line, reads_public ? "" : line.Get("tenant"));
}

absl::StatusOr<std::unique_ptr<ClientSecurity>> OpenSecurityFor(const CommandLine& line,
                                                                const std::string& tenant) {
  ClientSecurityConfig config;
  config.tls.ca = line.Get("tls-ca");
  config.tls.cert = line.Get("tls-cert");
  config.tls.key = line.Get("tls-key");
  config.token_file = line.Get("token-file");
  if (line.Given("tls-name") && config.tls.ca.empty()) {
    return UsageError(
        "--tls-name: without --tls-ca the call is plain text, and nobody's name is looked at");
  }
  config.tenant = tenant;
  absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      ClientSecurity::Open(config, "", nullptr);
  if (!security.ok()) return UsageError(security.status().message());
  return security;
}

NodeSession::NodeSession(const CommandLine& line, const std::string& target, TenantUse use)
    : security_(OpenSecurity(line, use)),
      client_(
          [&] {
            ClientOptions options;
            options.target = target;
            options.channel.tls_name = line.Get("tls-name");
            if (!security_.ok()) return options;
            options.credentials = (*security_)->credentials();
            options.metadata = (*security_)->metadata();
            return options;
          }(),
          parts_.parts()) {}

}  // namespace cairn::ctl
