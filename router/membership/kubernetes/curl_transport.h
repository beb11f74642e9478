// CurlTransport: an ApiTransport over HTTP/1.1 with libcurl, as a pod's service account.
//
// Token and CA are read anew for each request, as the kubelet exchanges them. A server that is
// named by https is verified against the CA alone, by name; a token goes nowhere else, so none is
// sent over http (a proxy on loopback, as of kubectl, brings its own). No redirect is followed, and
// no proxy of the environment used. At most one request at a time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "router/membership/kubernetes/api_transport.h"

namespace cairn::router {

class CurlTransport final : public ApiTransport {
 public:
  struct Options {
    std::string url;  // As https://10.0.0.1:443; no path.
    // Files; for https only.
    std::string ca;
    std::string token_file;
  };

  // INVALID_ARGUMENT naming what is wrong; files are not looked at.
  static absl::Status Validate(const Options& options);

  // REQUIRES: valid.
  explicit CurlTransport(Options options);
  ~CurlTransport() override;

  std::string name() const override { return options_.url; }
  absl::Status Get(const std::string& path, absl::Duration timeout, const WakeEvent& stop,
                   AnswerReader* reader) override;

 private:
  const Options options_;
};

}  // namespace cairn::router
