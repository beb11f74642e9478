// Labels as text and as messages: what is taken, and what is wrong with what is not.
#include "common/rpc/labels.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Complaint(const std::vector<std::string>& texts) {
  const absl::Status status = LabelsFromText(texts).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(LabelsTest, AreKeyAndValueByTheFirstEquals) {
  const auto labels = LabelsFromText({"zone=eu-1/a", "gpu=h200.8x"});
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ElementsAre(Label{"zone", "eu-1/a"}, Label{"gpu", "h200.8x"}));
  EXPECT_EQ(LabelText(labels->front()), "zone=eu-1/a");
  EXPECT_THAT(*LabelsFromText({}), IsEmpty());
}

TEST(LabelsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Complaint({"zone"}), HasSubstr("\"zone\": must be key=value"));
  EXPECT_THAT(Complaint({"=a"}), HasSubstr("\"=a\""));
  EXPECT_THAT(Complaint({"zone="}), HasSubstr("\"zone=\""));
  EXPECT_THAT(Complaint({"zone=a=b"}), HasSubstr("letters, digits"));
  EXPECT_THAT(Complaint({"zone=\n"}), HasSubstr("letters, digits"));
  const std::string long_name(65, 'x');
  EXPECT_THAT(Complaint(std::vector<std::string>(1, absl::StrCat(long_name, "=v"))),
              HasSubstr("key of 65 bytes"));
  EXPECT_THAT(Complaint(std::vector<std::string>(1, absl::StrCat("k=", long_name))),
              HasSubstr("value of 65 bytes"));
  EXPECT_THAT(Complaint({"zone=a", "gpu=l4", "zone=b"}),
              HasSubstr("\"zone\" is given twice: zone=a and zone=b"));
  EXPECT_THAT(Complaint(std::vector<std::string>(17, "k=v")), HasSubstr("17 labels, at most 16"));
}

TEST(LabelsTest, MessagesComeBackAsTheyWere) {
  const std::vector<Label> labels = {{"zone", "a"}, {std::string(64, 'k'), std::string(64, 'v')}};
  google::protobuf::RepeatedPtrField<v1::Label> messages;
  LabelsToProto(labels, &messages);
  const auto again = LabelsFromProto(messages);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, labels);
  messages.Add()->set_key("zone");
  EXPECT_FALSE(LabelsFromProto(messages).ok());
}

}  // namespace
}  // namespace cairn
