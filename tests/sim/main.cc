// The test program: gtest's own main, and the flags that name seeds.
#include <gtest/gtest.h>

#include "tests/sim/seed_range.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  cairn::sim::SeedRange::TakeFlags(&argc, argv);
  return RUN_ALL_TESTS();
}
