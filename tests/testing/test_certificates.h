// TestAuthority: a certificate authority for tests, in memory, made by OpenSSL as it is needed.
//
// Keys are P-256, so that making one takes a millisecond. Not thread-safe. Aborts where OpenSSL
// fails.
#pragma once

#include <memory>
#include <string>

namespace cairn::testing {

// PEM.
struct IssuedCertificate {
  std::string certificate;
  std::string key;
};

class TestAuthority {
 public:
  struct Subject {
    std::string common_name;
    std::string uri;           // Of the subject alternative name; empty for none.
    int valid_seconds = 3600;  // Negative: over since then.
  };

  explicit TestAuthority(const std::string& name);
  ~TestAuthority();

  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // PEM.
  const std::string& certificate() const { return certificate_; }

  // For servers and clients; also of the names localhost and 127.0.0.1.
  IssuedCertificate Issue(const Subject& subject);

 private:
  struct Keys;

  std::unique_ptr<Keys> keys_;
  std::string certificate_;
  long next_serial_ = 2;
};

// A file with this content, by rename: no reader sees half of it.
void ReplaceFile(const std::string& path, const std::string& text);

}  // namespace cairn::testing
