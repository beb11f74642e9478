#include "tests/testing/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::testing {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

constexpr long kClockSkewSeconds = 300;

Owned<EVP_PKEY> NewKey() {
  Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  CAIRN_CHECK(key != nullptr);
  return key;
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Pem(X509* certificate) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  CAIRN_CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return TextOf(bio.get());
}

std::string Pem(EVP_PKEY* key) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  CAIRN_CHECK(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return TextOf(bio.get());
}

void SetName(X509_NAME* name, const std::string& common_name) {
  if (common_name.empty()) return;
  CAIRN_CHECK(X509_NAME_add_entry_by_txt(
                  name, "CN", MBSTRING_UTF8,
                  reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0) == 1);
}

void AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  CAIRN_CHECK(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

Owned<X509> Blank(long serial, const std::string& common_name, EVP_PKEY* key, int valid_seconds) {
  Owned<X509> certificate(X509_new());
  CAIRN_CHECK(certificate != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  const long from = (valid_seconds < 0 ? 2 * valid_seconds : 0) - kClockSkewSeconds;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_seconds);
  SetName(X509_get_subject_name(certificate.get()), common_name);
  CAIRN_CHECK(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

}  // namespace

struct TestAuthority::Keys {
  Owned<EVP_PKEY> key;
  Owned<X509> certificate;
};

TestAuthority::TestAuthority(const std::string& name) : keys_(std::make_unique<Keys>()) {
  keys_->key = NewKey();
  keys_->certificate = Blank(1, name, keys_->key.get(), 24 * 3600);
  X509* const own = keys_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  CAIRN_CHECK(X509_sign(own, keys_->key.get(), EVP_sha256()) > 0);
  certificate_ = Pem(own);
}

TestAuthority::~TestAuthority() = default;

IssuedCertificate TestAuthority::Issue(const Subject& subject) {
  const Owned<EVP_PKEY> key = NewKey();
  const Owned<X509> certificate =
      Blank(next_serial_++, subject.common_name, key.get(), subject.valid_seconds);
  X509* const issuer = keys_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  std::string names = "DNS:localhost,IP:127.0.0.1";
  if (!subject.uri.empty()) absl::StrAppend(&names, ",URI:", subject.uri);
  AddExtension(certificate.get(), issuer, NID_subject_alt_name, names);
  AddExtension(certificate.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  CAIRN_CHECK(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()) > 0);
  return {Pem(certificate.get()), Pem(key.get())};
}

void ReplaceFile(const std::string& path, const std::string& text) {
  const std::string next = absl::StrCat(path, ".next");
  std::ofstream(next, std::ios::binary) << text;
  std::filesystem::rename(next, path);
}

}  // namespace cairn::testing
