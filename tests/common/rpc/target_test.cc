// What may be connected to, and what each other text is told.
#include "common/rpc/target.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ValidateTarget, TakesHostsWithAPortAndUnixSockets) {
  for (const char* target : {"127.0.0.1:1", "localhost:65535", "node-3.cache_a.example:7070",
                             "[::1]:7070", "[fe80::1%eth0]:7070", "unix:/run/cairn.sock"}) {
    EXPECT_TRUE(ValidateTarget(target).ok()) << ValidateTarget(target);
  }
}

TEST(ValidateTarget, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"here", "no port"},
      {":7070", "no host"},
      {"[]:7070", "no host"},
      {"a:", "port"},
      {"a:0", "1 to 65535"},
      {"127.0.0.1:99999", "1 to 65535"},
      {"a:18446744073709551617", "1 to 65535"},
      {"a:+7", "port"},
      {"a: 7", "port"},
      {"a:7070/", "port"},
      {"http://a:7070", "host"},
      {"dns:///a:7070", "host"},
      {"ipv4:1.2.3.4:7070", "host"},
      {":::::7", "host"},
      {"::1:7070", "host"},
      {"a b:7070", "host"},
      {std::string("a\0b:7070", 8), "host"},
      {"[::1:7070", "host"},
      {"unix:relative", "whole path"},
      {absl::StrCat("unix:/", std::string(200, 'p')), "too long"},
      {absl::StrCat(std::string(300, 'h'), ":7070"), "too long"},
  };
  for (const auto& [target, says] : cases) {
    const absl::Status status = ValidateTarget(target);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(says), HasSubstr(target.substr(0, 256)), HasSubstr("host:port")));
  }
}

}  // namespace
}  // namespace cairn
