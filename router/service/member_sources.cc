#include "router/service/member_sources.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "router/membership/dns_source.h"
#include "router/membership/kubernetes/curl_transport.h"
#include "router/membership/kubernetes/kubernetes_source.h"

namespace cairn::router {
namespace {

DnsSource::Options DnsOptions(const RouterConfig& config) {
  DnsSource::Options options;
  const size_t colon = config.nodes_dns.rfind(':');
  options.host = config.nodes_dns.substr(0, colon);
  uint32_t port = 0;
  CAIRN_CHECK(absl::SimpleAtoi(config.nodes_dns.substr(colon + 1), &port));
  options.port = static_cast<uint16_t>(port);
  options.interval = config.nodes_dns_interval;
  return options;
}

KubernetesSource::Options KubernetesOptions(const RouterConfig& config) {
  KubernetesSource::Options options;
  const std::vector<std::string> names = absl::StrSplit(config.kubernetes_service, '/');
  CAIRN_CHECK(names.size() == 2);
  options.watch.name_space = names[0];
  options.watch.service = names[1];
  options.watch.port_name = config.kubernetes_port_name;
  return options;
}

}  // namespace

std::unique_ptr<MemberSource> MakeMemberSource(const RouterConfig& config, const Clock* clock,
                                               RandomSource* random, const LineLog& log) {
  if (!config.nodes_dns.empty()) {
    return std::make_unique<DnsSource>(DnsOptions(config), std::make_unique<SystemResolver>(), log);
  }
  if (config.kubernetes_service.empty()) return nullptr;
  CurlTransport::Options server{config.KubernetesApi(), config.kubernetes_ca,
                                config.kubernetes_token_file};
  return std::make_unique<KubernetesSource>(
      KubernetesOptions(config), std::make_unique<CurlTransport>(std::move(server)),
      KubernetesSource::Parts{.clock = clock, .random = random, .log = log});
}

}  // namespace cairn::router
