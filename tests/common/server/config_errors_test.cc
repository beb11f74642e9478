// Puts good and bad values through the checks and reads the status that comes of it.
#include "common/server/config_errors.h"

#include <limits>

#include "gmock/gmock.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

TEST(ConfigErrorsTest, GoodValuesAreOk) {
  ConfigErrors errors;
  errors.CheckRange("threads", 1, 1, 8);
  errors.CheckRange("threads", 8, 1, 8);
  errors.CheckReal("ratio", 0.5, 0, 1);
  errors.CheckRange("pool", ByteSize::MiB(1), ByteSize::KiB(4), ByteSize::GiB(1));
  errors.CheckRange("ttl", absl::Seconds(3), absl::Seconds(1), absl::Minutes(1));
  errors.CheckNotEmpty("node_id", "n0");
  errors.CheckListenAddress("listen", "127.0.0.1:7000");
  errors.Add(absl::OkStatus());
  EXPECT_TRUE(errors.ok());
  EXPECT_TRUE(errors.ToStatus().ok());
}

TEST(ConfigErrorsTest, EachErrorNamesFlagValueAndRange) {
  ConfigErrors errors;
  errors.CheckRange("threads", 9, 1, 8);
  errors.CheckReal("ratio", 1.5, 0, 1);
  errors.CheckRange("pool", ByteSize::MiB(1), ByteSize::MiB(2), ByteSize::GiB(1));
  errors.CheckRange("ttl", absl::Milliseconds(1), absl::Seconds(1), absl::Minutes(1));
  errors.CheckNotEmpty("node_id", "");
  errors.CheckListenAddress("listen", "nowhere");
  errors.Check(false, "tokens", "15", "a power of two");
  errors.Add(absl::FailedPreconditionError("--memory_limit: too small"));
  EXPECT_FALSE(errors.ok());
  const absl::Status status = errors.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--threads=9: must be from 1 to 8\n"
                                                       "--ratio=1.5: must be from 0 to 1\n"
                                                       "--pool=1MiB: must be from 2MiB to 1GiB\n"
                                                       "--ttl=1ms: must be from 1s to 1m\n"
                                                       "--node_id=: must be set\n"
                                                       "--listen: 'nowhere' is no address"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tokens=15: must be a power of two\n"
                                                       "--memory_limit: too small"));
}

TEST(ConfigErrorsTest, ANumberThatIsNoneIsOutOfRange) {
  ConfigErrors errors;
  errors.CheckReal("ratio", std::numeric_limits<double>::quiet_NaN(), 0, 1);
  EXPECT_FALSE(errors.ok());
}

}  // namespace
}  // namespace cairn
