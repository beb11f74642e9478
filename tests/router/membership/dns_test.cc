// A scripted resolver instead of a network: each answer is given by hand, and the source runs on a
// thread of its own as it does in the router.
#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "absl/strings/str_cat.h"
#include "router/membership/dns_members.h"
#include "router/membership/dns_source.h"

namespace cairn::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Answer = absl::StatusOr<std::vector<std::string>>;

std::vector<std::string> AddressesOf(const MemberList& members) {
  std::vector<std::string> addresses;
  for (const Member& member : members) addresses.push_back(member.address);
  return addresses;
}

TEST(DnsMembersTest, EachAddressOfEitherFamilyIsANode) {
  DnsMembers members(7070);
  members.Take({"10.0.0.2", "fd00::1", "10.0.0.1"});
  EXPECT_THAT(AddressesOf(members.members()),
              ElementsAre("10.0.0.1:7070", "10.0.0.2:7070", "[fd00::1]:7070"));
}

TEST(DnsMembersTest, AnAddressThatIsLeftOutStaysForAFewAnswers) {
  DnsMembers members(1);
  members.Take({"10.0.0.1", "10.0.0.2"});
  members.Take({"10.0.0.1"});
  members.Take({"10.0.0.1"});
  EXPECT_THAT(members.members(), SizeIs(2)) << "servers that rotate give subsets";
  members.Take({"10.0.0.2"});
  EXPECT_THAT(members.members(), SizeIs(2)) << "it was said again";
  for (int i = 0; i < DnsMembers::kAbsencesMax; ++i) members.Take({"10.0.0.2"});
  EXPECT_THAT(AddressesOf(members.members()), ElementsAre("10.0.0.2:1"));
}

TEST(DnsMembersTest, AnEndlessAnswerIsCut) {
  DnsMembers members(1);
  std::vector<std::string> addresses;
  for (size_t i = 0; i < 2 * DnsMembers::kAddressesMax; ++i) {
    addresses.push_back(absl::StrCat("10.", i / 65536, ".", i / 256 % 256, ".", i % 256));
  }
  members.Take(addresses);
  EXPECT_THAT(members.members(), SizeIs(DnsMembers::kAddressesMax));
}

// Gives its answers in turn, the last one for ever, and says when all were given.
class ScriptedResolver final : public Resolver {
 public:
  ScriptedResolver(std::deque<Answer> answers, WakeEvent* all_given)
      : answers_(std::move(answers)), all_given_(all_given) {}

  Answer Resolve(const std::string& host) override {
    EXPECT_EQ(host, "nodes.example");
    const Answer answer = answers_.front();
    if (answers_.size() > 1) {
      answers_.pop_front();
    } else if (std::exchange(last_given_, true)) {
      all_given_->Set();  // And what it led to is done.
    }
    return answer;
  }

 private:
  std::deque<Answer> answers_;
  bool last_given_ = false;
  WakeEvent* const all_given_;
};

class DnsSourceTest : public ::testing::Test {
 protected:
  // The lists that were told until all answers were given.
  std::vector<MemberList> Run(std::deque<Answer> answers) {
    WakeEvent all_given;
    WakeEvent stop;
    source_ = std::make_unique<DnsSource>(
        DnsSource::Options{.host = "nodes.example", .port = 7, .interval = absl::Microseconds(100)},
        std::make_unique<ScriptedResolver>(std::move(answers), &all_given),
        [this](absl::string_view line) { lines_.emplace_back(line); });
    std::vector<MemberList> told;
    std::thread runs([&] {
      source_->Run(stop, [&told](const MemberList& members) { told.push_back(members); });
    });
    all_given.Wait();
    stop.Set();
    runs.join();
    return told;
  }

  std::unique_ptr<DnsSource> source_;
  std::vector<std::string> lines_;
};

TEST_F(DnsSourceTest, TellsTheFirstListAndThoseThatDiffer) {
  const std::vector<std::string> one = {"10.0.0.1"};
  const std::vector<std::string> two = {"10.0.0.1", "10.0.0.2"};
  const auto told = Run({one, one, two, two});
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_THAT(AddressesOf(told[0]), ElementsAre("10.0.0.1:7"));
  EXPECT_THAT(AddressesOf(told[1]), ElementsAre("10.0.0.1:7", "10.0.0.2:7"));
  EXPECT_TRUE(source_->status().last.ok());
  EXPECT_EQ(source_->status().failed, 0u);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(DnsSourceTest, AFailureKeepsTheLastListHoweverLongItLasts) {
  const std::vector<std::string> one = {"10.0.0.1"};
  std::deque<Answer> answers = {one};
  for (int i = 0; i < 50; ++i) answers.push_back(absl::UnavailableError("the server is silent"));
  const auto told = Run(answers);
  EXPECT_THAT(told, SizeIs(1));
  EXPECT_THAT(source_->status().last.message(), HasSubstr("silent"));
  EXPECT_GE(source_->status().failed, 50u);
  ASSERT_THAT(lines_, SizeIs(1)) << "the same reason is said once";
  EXPECT_THAT(lines_[0], HasSubstr("dns nodes.example:7: the server is silent"));
}

TEST_F(DnsSourceTest, BeforeTheFirstAnswerNothingIsTold) {
  const auto told = Run({absl::UnavailableError("no such name")});
  EXPECT_THAT(told, IsEmpty());
}

TEST(SystemResolverTest, ANumberIsItsOwnAddressAndNoNameIsAnError) {
  SystemResolver resolver;
  EXPECT_THAT(*resolver.Resolve("127.0.0.1"), ElementsAre("127.0.0.1"));
  EXPECT_THAT(*resolver.Resolve("::1"), ElementsAre("::1"));
  const Answer none = resolver.Resolve("");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace cairn::router
