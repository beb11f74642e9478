#include "tests/bench/datapath/bench_node.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/testing/test_certificates.h"

namespace cairn::bench {
namespace {

TlsFiles FilesOf(const std::string& folder, absl::string_view name) {
  return {.cert = absl::StrCat(folder, "/", name, ".cert"),
          .key = absl::StrCat(folder, "/", name, ".key"),
          .ca = absl::StrCat(folder, "/ca")};
}

}  // namespace

absl::StatusOr<std::string> ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return absl::UnavailableError("cannot tell where cairn-bench lies");
  return self.parent_path().string();
}

absl::StatusOr<std::unique_ptr<BenchNode>> BenchNode::Start(const Options& options) {
  std::unique_ptr<BenchNode> node(new BenchNode());
  node->folder_ = testing::MakeTempFolder();
  absl::Status status = options.tls ? node->MakeCertificates() : absl::OkStatus();
  if (status.ok()) status = node->StartProcess(options);
  if (!status.ok()) return status;
  return node;
}

BenchNode::~BenchNode() {
  process_.reset();
  security_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::Status BenchNode::MakeCertificates() {
  testing::TestAuthority authority("cairn-bench");
  testing::ReplaceFile(absl::StrCat(folder_, "/ca"), authority.certificate());
  std::string access;
  for (const char* name : {"node", "worker"}) {
    const std::string uri = absl::StrCat("spiffe://cairn.bench/", name);
    const testing::IssuedCertificate issued = authority.Issue({.common_name = name, .uri = uri});
    testing::ReplaceFile(FilesOf(folder_, name).cert, issued.certificate);
    testing::ReplaceFile(FilesOf(folder_, name).key, issued.key);
  }
  testing::ReplaceFile(absl::StrCat(folder_, "/access"),
                       "spiffe://cairn.bench/worker worker bench\n");
  ClientSecurityConfig config;
  config.tls = FilesOf(folder_, "worker");
  absl::StatusOr<std::unique_ptr<ClientSecurity>> security =
      ClientSecurity::Open(config, "", nullptr);
  if (!security.ok()) return security.status();
  security_ = *std::move(security);
  return absl::OkStatus();
}

absl::Status BenchNode::StartProcess(const Options& options) {
  const absl::StatusOr<std::string> programs = ProgramFolder();
  if (!programs.ok()) return programs.status();
  testing::ServerProcess::Options process;
  process.program = absl::StrCat(*programs, "/cairn-node");
  process.flags = {absl::StrCat("--host-memory=", options.pool_mib, "MiB"), "--eviction-policy=lru",
                   "--in-flight-bytes=64MiB"};
  if (options.tls) {
    const TlsFiles files = FilesOf(folder_, "node");
    for (const std::string& flag :
         {std::string("--insecure=false"), absl::StrCat("--tls-cert=", files.cert),
          absl::StrCat("--tls-key=", files.key), absl::StrCat("--tls-ca=", files.ca),
          absl::StrCat("--access-file=", folder_, "/access")}) {
      process.flags.push_back(flag);
    }
    process.credentials = security_->credentials();
  } else {
    process.flags.push_back(absl::StrCat("--listen=127.0.0.1:0,unix:", folder_, "/node.sock"));
  }
  process.flags.insert(process.flags.end(), options.flags.begin(), options.flags.end());
  absl::StatusOr<std::unique_ptr<testing::ServerProcess>> started =
      testing::StartNode(std::move(process));
  if (!started.ok()) return started.status();
  process_ = *std::move(started);
  return absl::OkStatus();
}

ClientOptions BenchNode::OptionsFor(Transport transport) const {
  CAIRN_CHECK((transport == Transport::kTls) == (security_ != nullptr));
  ClientOptions options;
  options.use_local = false;  // What is measured here is the wire.
  options.target = transport == Transport::kUnix ? absl::StrCat("unix:", folder_, "/node.sock")
                                                 : process_->address();
  if (security_ != nullptr) {
    options.credentials = security_->credentials();
    options.metadata = security_->metadata();
  }
  return options;
}

std::unique_ptr<BenchClient> BenchNode::Connect(Transport transport) const {
  return std::make_unique<BenchClient>(OptionsFor(transport));
}

}  // namespace cairn::bench
