// Method: a store that may keep little of namespaces, filled until it refuses.
#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/cache_node/store/test_store.h"

namespace cairn::node {
namespace {

constexpr uint64_t kBlockBytes = 1024;
constexpr uint64_t kBytesMax = 64 << 10;
constexpr uint64_t kSegmentBytes = 64 << 10;
constexpr int kTriesMax = 4000;

TestStore SmallTable(uint64_t bytes_max = kBytesMax) {
  TestStoreOptions options;
  options.store.namespace_bytes_max = bytes_max;
  options.pool_bytes = 16 * kSegmentBytes;
  return TestStore(std::move(options));
}

void ExpectNamesTheFlag(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--namespace-memory"));
}

TEST(NamespaceMemoryTest, NamespacesAreBoundedInBytesAndThoseThatAreThereStay) {
  TestStore t = SmallTable();
  absl::Status status;
  int registered = 0;
  while (registered < kTriesMax) {
    const std::string model = absl::StrCat("model", registered);
    status = t.store->RegisterNamespace("t", model, TestStore::Shape(kBlockBytes, model)).status();
    if (!status.ok()) break;
    ++registered;
  }
  ExpectNamesTheFlag(status);
  EXPECT_GT(registered, 10);
  EXPECT_EQ(t.store->Namespaces("t").size(), static_cast<size_t>(registered));
  const auto again =
      t.store->RegisterNamespace("t", "model0", TestStore::Shape(kBlockBytes, "model0"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
}

TEST(NamespaceMemoryTest, NamesOfOneNamespaceAreBoundedInBytes) {
  TestStore t = SmallTable();
  absl::Status status;
  int registered = 0;
  while (registered < kTriesMax) {
    const std::string name = absl::StrCat(std::string(100, 'n'), registered);
    status = t.store->RegisterNamespace("t", name, TestStore::Shape(kBlockBytes)).status();
    if (!status.ok()) break;
    ++registered;
  }
  ExpectNamesTheFlag(status);
  EXPECT_GT(registered, 10);
}

TEST(NamespaceMemoryTest, PartsOfALayoutCount) {
  TestStore t = SmallTable(4096);
  EXPECT_TRUE(t.store->RegisterNamespace("t", "few", TestStore::ManySegments(1, 1, false)).ok());
  ExpectNamesTheFlag(
      t.store->RegisterNamespace("t", "many", TestStore::ManySegments(1, 256, false)).status());
}

TEST(NamespaceMemoryTest, RetirementGivesNothingBackAndRegisteringAnewTakesNothing) {
  TestStore t = SmallTable(4096);
  const Namespace fields = TestStore::Shape(kBlockBytes);
  for (int i = 0; i < 100; ++i) {
    const auto registered = t.store->RegisterNamespace("t", "llm", fields);
    ASSERT_TRUE(registered.ok()) << registered.status();
    ASSERT_TRUE(t.store->RetireNamespace(registered->fingerprint).ok());
  }
}

}  // namespace
}  // namespace cairn::node
