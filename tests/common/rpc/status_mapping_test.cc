// Statuses with and without payloads through the wire form and back, and hostile ones from a peer.
#include "common/rpc/status_mapping.h"

#include <string>

#include "common/rpc/error_reason.h"
#include "common/rpc/field_status.h"
#include "common/rpc/retry_status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Pair;

google::rpc::Status WireOf(const grpc::Status& status) {
  google::rpc::Status wire;
  EXPECT_TRUE(wire.ParseFromString(status.error_details()));
  return wire;
}

TEST(RetryStatus, DelayTravelsToTheNanosecond) {
  for (const absl::Duration delay :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(1500), absl::Minutes(2)}) {
    const absl::Status status = WithRetryAfter(absl::ResourceExhaustedError("full"), delay);
    EXPECT_EQ(RetryAfter(FromGrpcStatus(ToGrpcStatus(status))), delay);
  }
}

TEST(RetryStatus, LaterDelayReplacesTheEarlier) {
  absl::Status status = WithRetryAfter(absl::AbortedError("busy"), absl::Seconds(1));
  status = WithRetryAfter(status, absl::Seconds(2));
  EXPECT_EQ(RetryAfter(status), absl::Seconds(2));
}

TEST(RetryStatus, DelaysStayWithinTheirBounds) {
  const absl::Status status = WithRetryAfter(absl::AbortedError("busy"), absl::InfiniteDuration());
  EXPECT_EQ(RetryAfter(status), kRetryDelayMax);
  google::rpc::RetryInfo hostile;
  for (const int64_t seconds : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    hostile.mutable_retry_delay()->set_seconds(seconds);
    absl::Status received = absl::AbortedError("busy");
    received.SetPayload(kRetryInfoTypeUrl, absl::Cord(hostile.SerializeAsString()));
    EXPECT_EQ(RetryAfter(received), seconds < 0 ? absl::ZeroDuration() : kRetryDelayMax);
  }
}

TEST(RetryStatus, NoneWhereNoneWasGiven) {
  EXPECT_EQ(RetryAfter(absl::AbortedError("x")), std::nullopt);
  EXPECT_EQ(RetryAfter(absl::OkStatus()), std::nullopt);
  absl::Status broken = absl::AbortedError("x");
  broken.SetPayload(kRetryInfoTypeUrl, absl::Cord("\xff"));
  EXPECT_EQ(RetryAfter(broken), std::nullopt);
}

TEST(ErrorReason, ReasonAndFactsTravel) {
  const absl::Status status = WithReason(absl::FailedPreconditionError("no"), "NAMESPACE_UNKNOWN",
                                         {{"fingerprint", "00ff"}, {"name", "prod"}});
  const auto reason = ReasonOf(FromGrpcStatus(ToGrpcStatus(status)));
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->reason, "NAMESPACE_UNKNOWN");
  EXPECT_THAT(reason->metadata, ElementsAre(Pair("fingerprint", "00ff"), Pair("name", "prod")));
}

TEST(ErrorReason, ReasonOfAnotherDomainIsNotOurs) {
  google::rpc::ErrorInfo info;
  info.set_reason("QUOTA");
  info.set_domain("elsewhere");
  absl::Status status = absl::AbortedError("x");
  status.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  EXPECT_FALSE(ReasonOf(status).has_value());
}

TEST(StatusMapping, EveryCodeAndMessageComesBack) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what happened");
    const grpc::Status wire = ToGrpcStatus(status);
    EXPECT_EQ(static_cast<int>(wire.error_code()), code);
    EXPECT_EQ(WireOf(wire).code(), code);
    EXPECT_EQ(WireOf(wire).message(), "what happened");
    const absl::Status back = FromGrpcStatus(wire);
    EXPECT_EQ(back.code(), status.code());
    EXPECT_EQ(back.message(), status.message());
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
}

TEST(StatusMapping, ErrorsWithoutAReasonGetTheirCodesName) {
  const auto reason = ReasonOf(FromGrpcStatus(ToGrpcStatus(absl::InvalidArgumentError("x"))));
  ASSERT_TRUE(reason.has_value());
  EXPECT_EQ(reason->reason, "INVALID_ARGUMENT");
}

TEST(StatusMapping, ResourceExhaustedAlwaysSaysWhenToRetry) {
  const absl::Status status = FromGrpcStatus(ToGrpcStatus(absl::ResourceExhaustedError("full")));
  EXPECT_EQ(RetryAfter(status), kRetryDelayDefault);
  EXPECT_EQ(RetryAfter(FromGrpcStatus(ToGrpcStatus(absl::AbortedError("x")))), std::nullopt);
}

TEST(StatusMapping, ForeignPayloadsStayInside) {
  absl::Status status = absl::InternalError("x");
  status.SetPayload("type.example.com/secret", absl::Cord("inner state"));
  EXPECT_EQ(WireOf(ToGrpcStatus(status)).details_size(), 1);
}

TEST(StatusMapping, LongMessagesAreCutBetweenCharacters) {
  for (size_t shift = 0; shift < 3; ++shift) {
    std::string message(shift, 'a');
    while (message.size() < 2 * kStatusMessageBytesMax) message += "\u20ac";  // 3 bytes
    const google::rpc::Status wire = WireOf(ToGrpcStatus(absl::AbortedError(message)));
    EXPECT_LE(wire.message().size(), kStatusMessageBytesMax);
    EXPECT_THAT(wire.message(), EndsWith("\u20ac [cut]"));
  }
}

TEST(StatusMapping, BytesThatAreNotTextDoNotGoOut) {
  const grpc::Status wire = ToGrpcStatus(absl::InvalidArgumentError("model \xff\xfe."));
  EXPECT_EQ(wire.error_message(), "model ??.");
  EXPECT_EQ(WireOf(wire).message(), "model ??.");
}

TEST(StatusMapping, DetailsOverTheirBoundLoseTheFactsOnly) {
  absl::Status status = WithReason(absl::ResourceExhaustedError("full"), "POOL_FULL",
                                   {{"what", std::string(kStatusDetailsBytesMax, 'x')}});
  status = WithRetryAfter(status, absl::Seconds(3));
  const grpc::Status wire = ToGrpcStatus(status);
  EXPECT_LE(wire.error_details().size(), kStatusDetailsBytesMax);
  const absl::Status back = FromGrpcStatus(wire);
  EXPECT_EQ(RetryAfter(back), absl::Seconds(3));
  ASSERT_TRUE(ReasonOf(back).has_value());
  EXPECT_EQ(ReasonOf(back)->reason, "POOL_FULL");
  EXPECT_TRUE(ReasonOf(back)->metadata.empty());
}

TEST(StatusMapping, BrokenDetailsLeaveCodeAndMessage) {
  const grpc::Status wire(grpc::StatusCode::ABORTED, "gone", "\xff\xff");
  const absl::Status status = FromGrpcStatus(wire);
  EXPECT_EQ(status, absl::AbortedError("gone"));
}

TEST(StatusMapping, UnknownCodesAreUnknown) {
  const grpc::Status wire(static_cast<grpc::StatusCode>(17), "new");
  EXPECT_EQ(FromGrpcStatus(wire).code(), absl::StatusCode::kUnknown);
}

TEST(FieldStatus, NamesTheFieldAndKeepsTheRest) {
  const absl::Status inner = WithRetryAfter(absl::ResourceExhaustedError("full"), absl::Seconds(1));
  const absl::Status status = InField("prompts[3]", inner);
  EXPECT_EQ(status.code(), inner.code());
  EXPECT_EQ(status.message(), "prompts[3]: full");
  EXPECT_EQ(RetryAfter(status), absl::Seconds(1));
  EXPECT_TRUE(InField("x", absl::OkStatus()).ok());
}

}  // namespace
}  // namespace cairn::testing
