// CAIRN_CHECK from both sides: what holds costs nothing, what fails stops the process and says
// where.
#include "common/base/check.h"

#include <gmock/gmock.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

TEST(CheckTest, PassesWhenTheConditionHolds) {
  CAIRN_CHECK(1 + 1 == 2);
  CAIRN_CHECK_MSG(true, "never said");
  CAIRN_CHECK_OK(absl::OkStatus());
}

TEST(CheckTest, EvaluatesItsConditionOnceAndItsMessageOnlyOnFailure) {
  int conditions = 0, messages = 0;
  CAIRN_CHECK_MSG(++conditions == 1, absl::StrCat("message ", ++messages));
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(messages, 0);
}

TEST(CheckDeathTest, SaysFileAndConditionAndAborts) {
  EXPECT_EXIT(CAIRN_CHECK(1 + 1 == 3), ::testing::KilledBySignal(SIGABRT),
              "check_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3");
}

TEST(CheckDeathTest, SaysItsMessage) {
  EXPECT_DEATH(CAIRN_CHECK_MSG(false, absl::StrCat("slot ", 7)), "check failed: false slot 7");
}

TEST(CheckDeathTest, SaysTheStatusThatWasNotOk) {
  EXPECT_DEATH(CAIRN_CHECK_OK(absl::AbortedError("token gone")), "ABORTED: token gone");
}

}  // namespace
}  // namespace cairn
