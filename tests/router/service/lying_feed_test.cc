// Nodes that say what no node says: the router names it, and answers everybody all the same.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/identity/frame.h"
#include "tests/router/service/router_fixture.h"

namespace cairn::router {
namespace {

using ::testing::HasSubstr;

class LyingFeedTest : public RouterTest {
 protected:
  void Start(const std::vector<std::string>& nodes) {
    StartRouter(SmallConfig(nodes), [this](absl::string_view line) {
      absl::MutexLock lock(&mutex_);
      lines_.emplace_back(line);
    });
  }

  static ModelHolder::Identity Labelled(const std::string& key, const std::string& value) {
    ModelHolder::Identity identity;
    identity.node_id = "node-b";
    identity.worker_address = "worker:b";
    identity.labels.emplace_back(key, value);
    return identity;
  }

  // Before what its log goes to.
  void TearDown() override { router_ = nullptr; }

  ScriptedNode honest_{{.node_id = "node-a", .worker_address = "worker:a"}};
  absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

// A label is cut where it is quoted, here within a letter of two bytes.
TEST_F(LyingFeedTest, WhatIsQuotedOfANodeIsReadableAndTheListIsAnswered) {
  ScriptedNode liar(Labelled("zone\n\x1b[31m", absl::StrCat(std::string(63, 'a'), "\u00e9\u00e9")));
  Start({honest_.target(), liar.target()});
  ASSERT_TRUE(AwaitState(0, HolderState::kExact));
  std::string error;
  ASSERT_TRUE(Await([&] {
    const auto list = client_->ListReplicas();
    EXPECT_TRUE(list.ok()) << list.status();
    if (!list.ok()) return true;
    error = list->holders[1].error;
    return error.find("label") != std::string::npos;
  }));
  EXPECT_THAT(error, HasSubstr("label \"zone??[31m="));
  absl::MutexLock lock(&mutex_);
  for (const std::string& line : lines_) {
    EXPECT_TRUE(IsUtf8(line)) << line;
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
  }
}

TEST_F(LyingFeedTest, ALabelOf16KiBKeepsItsNodeOutAndNobodyElse) {
  ScriptedNode liar(Labelled("zone", std::string(16 << 10, 'a')));
  Start({liar.target(), honest_.target()});
  ASSERT_TRUE(AwaitState(1, HolderState::kExact));
  ASSERT_TRUE(Await([&] {
    return client_->ListReplicas()->holders[0].error.find("value of 16384 bytes") !=
           std::string::npos;
  }));
  EXPECT_EQ(client_->ListReplicas()->replicas.size(), 1u);
}

}  // namespace
}  // namespace cairn::router
