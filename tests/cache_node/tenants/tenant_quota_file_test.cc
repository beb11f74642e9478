// Quota files: what lines mean, and what each wrong line is told.
#include "cache_node/tenants/tenant_quota_file.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cairn::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ByteSize kKeptMax = ByteSize::GiB(10);

TEST(TenantQuotaFileTest, EachTenantHasItsLineAndTheRestTheStar) {
  const absl::StatusOr<TenantQuotaLines> limits = ParseTenantQuotas(
      "# who may take what\n"
      "team-a host=4GiB host-kept=2GiB disk=1TiB leased=512MiB reserved=256MiB\n"
      "\n"
      "* host=1GiB requests=200 bytes=1GiB  # everybody else\n"
      "team-b\n",
      "quotas", kKeptMax);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->quotas.Of("team-a"), (TenantQuota{.host_bytes_max = uint64_t{4} << 30,
                                                      .host_bytes_kept = uint64_t{2} << 30,
                                                      .disk_bytes_max = uint64_t{1} << 40,
                                                      .leased_bytes_max = uint64_t{512} << 20,
                                                      .reserved_bytes_max = uint64_t{256} << 20}));
  EXPECT_FALSE(limits->rates.Of("team-a").limited());
  EXPECT_EQ(limits->quotas.Of("team-b"), TenantQuota());
  EXPECT_EQ(limits->quotas.Of("anyone").host_bytes_max, uint64_t{1} << 30);
  EXPECT_EQ(limits->rates.Of("anyone"),
            (TenantRate{.requests_per_second = 200, .bytes_per_second = uint64_t{1} << 30}));
}

TEST(TenantQuotaFileTest, AnEmptyFileLimitsNobody) {
  const absl::StatusOr<TenantQuotaLines> limits = ParseTenantQuotas("\n#\n", "quotas", kKeptMax);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->quotas.Of("a"), TenantQuota());
  EXPECT_FALSE(limits->rates.Of("a").limited());
}

TEST(TenantQuotaFileTest, WrongLinesAreNamedWithWhatToWrite) {
  const std::string long_name(300, 'x');
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"a host=4GB", "host='4GB': write a size such as 64GiB"},
      {"a host", "host='': write a size"},
      {"a hots=4GiB", "'hots': no limit of that name; there are host, host-kept"},
      {"a host=1GiB host=2GiB", "'host': given twice"},
      {"a requests=many", "requests='many': write a whole number"},
      {"a requests=-1", "requests='-1'"},
      {"host=1GiB", "begins with a tenant"},
      {"a host=1GiB host-kept=2GiB", "host-kept is more than host"},
      {"* host-kept=1GiB", "name them"},
      {"a\na", "tenant 'a' has a line already"},
      {"a host-kept=6GiB\nb host-kept=5GiB", "more than 10GiB"},
      {absl::StrCat(long_name, " host=1GiB"), "begins with a tenant"},
  };
  for (const auto& [line, says] : wrong) {
    const absl::Status status = ParseTenantQuotas(line, "my-quotas", kKeptMax).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("my-quotas"), HasSubstr(says)));
  }
}

}  // namespace
}  // namespace cairn::node
