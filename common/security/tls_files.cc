#include "common/security/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/security/watched_file.h"

namespace cairn {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Free>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free>;

// Which file of which flag.
struct Source {
  absl::string_view prefix;
  absl::string_view flag;
  const std::string& path;

  absl::Status Wrong(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat("--", prefix, flag, "=", path, ": ", why));
  }
};

std::unique_ptr<BIO, Free> Open(absl::string_view text) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<std::string> Read(const Source& source) {
  absl::StatusOr<std::string> text = ReadSecurityFile(source.path);
  if (!text.ok()) return source.Wrong(text.status().message());
  return text;
}

// The first certificate of the file, which is not over.
absl::StatusOr<Certificate> ReadCertificate(const Source& source) {
  const absl::StatusOr<std::string> text = Read(source);
  if (!text.ok()) return text.status();
  Certificate certificate(PEM_read_bio_X509(Open(*text).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) {
    return source.Wrong("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)");
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return source.Wrong("the certificate is no longer valid; issue a new one");
  }
  return certificate;
}

absl::Status CheckKey(const Source& source, X509* certificate) {
  const absl::StatusOr<std::string> text = Read(source);
  if (!text.ok()) return text.status();
  const PrivateKey key(PEM_read_bio_PrivateKey(Open(*text).get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return source.Wrong("holds no private key in PEM form that needs no password");
  }
  const bool fits = X509_check_private_key(certificate, key.get()) == 1;
  ERR_clear_error();
  if (!fits) return source.Wrong("is not the key of the certificate; give both of one issue");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files, absl::string_view prefix) {
  const Source cert{prefix, "cert", files.cert};
  const Source key{prefix, "key", files.key};
  const Source ca{prefix, "ca", files.ca};
  if (files.cert.empty() != files.key.empty()) {
    const Source& missing = files.cert.empty() ? cert : key;
    const Source& given = files.cert.empty() ? key : cert;
    return given.Wrong(absl::StrCat("a certificate and its key go together; give --", prefix,
                                    missing.flag, " too"));
  }
  if (!files.ca.empty()) {
    if (absl::Status status = ReadCertificate(ca).status(); !status.ok()) return status;
  }
  if (files.cert.empty()) return absl::OkStatus();
  const absl::StatusOr<Certificate> certificate = ReadCertificate(cert);
  if (!certificate.ok()) return certificate.status();
  return CheckKey(key, certificate->get());
}

}  // namespace cairn
