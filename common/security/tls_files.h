// TlsFiles: the PEM files of one side of TLS, and whether they can be what they should.
//
// A plain value. Both sides re-read them about once a second; exchange certificate and key
// together, by renaming a folder or a link, as Kubernetes does for secrets.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn {

struct TlsFiles {
  std::string cert;  // Own certificate, with those between it and the CA.
  std::string key;   // Its private key, without a password.
  std::string ca;    // Certificates that the peer's must come from.

  bool any() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// Reads what is named, and checks: certificates parse and are not over, the key parses and fits the
// certificate. INVALID_ARGUMENT naming the flag (`prefix` and cert, key or ca), the file, what is
// wrong and what to do.
absl::Status CheckTlsFiles(const TlsFiles& files, absl::string_view prefix);

}  // namespace cairn
