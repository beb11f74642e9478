// Waits on an event that is set before, during or not at all.
#include "common/server/wake_event.h"

#include <thread>

#include "gmock/gmock.h"

namespace cairn {
namespace {

TEST(WakeEventTest, AWaitThatNobodyWakesTimesOut) {
  const WakeEvent event;
  EXPECT_FALSE(event.WaitFor(absl::ZeroDuration()));
  EXPECT_FALSE(event.WaitFor(absl::Milliseconds(-5)));
  EXPECT_FALSE(event.WaitFor(absl::Milliseconds(1)));
}

TEST(WakeEventTest, OnceSetItStaysSet) {
  WakeEvent event;
  event.Set();
  event.Set();
  EXPECT_TRUE(event.WaitFor(absl::ZeroDuration()));
  EXPECT_TRUE(event.WaitFor(absl::Hours(1)));
  event.Wait();
}

TEST(WakeEventTest, SettingWakesTheThreadThatWaits) {
  WakeEvent event;
  bool woken = false;
  std::thread waiter([&] { woken = event.WaitFor(absl::Hours(1)); });
  event.Set();
  waiter.join();
  EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace cairn
