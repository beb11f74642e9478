// Method: a process of its own that would never end by itself.
#include "common/server/exit_deadline.h"

#include "common/server/wake_event.h"
#include "gmock/gmock.h"

namespace cairn {
namespace {

TEST(ExitDeadlineTest, EndsAProcessThatHangs) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const ExitDeadline deadline(absl::Milliseconds(1), "leaves what hangs", 7);
        WakeEvent().Wait();
      },
      ::testing::ExitedWithCode(7), "leaves what hangs");
}

TEST(ExitDeadlineTest, LeavesAProcessThatIsDoneInTime) {
  const ExitDeadline deadline(absl::Hours(1000), "never said", 7);
}

}  // namespace
}  // namespace cairn
