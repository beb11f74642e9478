// Namespaces through the message and back, and each field bent on its own.
#include "common/rpc/namespace_conversion.h"

#include <functional>
#include <string>

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

Namespace Example() {
  Namespace name_space;
  name_space.model = "llama";
  name_space.revision = "sha256:00";
  name_space.numerics = std::string("\0\xff", 2);
  name_space.key_scheme = KeyScheme::kExternal;
  name_space.layout = {.version = 1, .block_tokens = 16, .slices = 2, .groups = {}};
  name_space.layout.groups.push_back({.kind = GroupKind::kFull,
                                      .required = 1,
                                      .layers = 3,
                                      .kv_heads = 8,
                                      .key_dim = 64,
                                      .value_dim = 32,
                                      .dtype = Dtype::kInt8,
                                      .scales = ScaleKind::kPerTokenAndHead});
  name_space.layout.groups.push_back({.kind = GroupKind::kSlidingWindow,
                                      .required = 0,
                                      .layers = 5,
                                      .kv_heads = 4,
                                      .window_tokens = 1024,
                                      .opaque_bytes = 100});
  return name_space;
}

// The status of the example's message after `bend`.
absl::Status Bent(const std::function<void(v1::Namespace*)>& bend) {
  v1::Namespace message = NamespaceToProto(Example());
  bend(&message);
  return NamespaceFromProto(message).status();
}

void ExpectInvalid(const absl::Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(NamespaceConversion, EveryFieldComesBack) {
  const auto back = NamespaceFromProto(NamespaceToProto(Example()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, Example());
}

TEST(NamespaceConversion, RefusesUnknownEnumValues) {
  ExpectInvalid(Bent([](auto* m) {
                  m->mutable_layout()->mutable_groups(0)->set_kind(v1::GROUP_KIND_UNSPECIFIED);
                }),
                "groups[0].kind is 0");
  ExpectInvalid(Bent([](auto* m) {
                  m->mutable_layout()->mutable_groups(1)->set_kind(static_cast<v1::GroupKind>(8));
                }),
                "groups[1].kind is 8");
  ExpectInvalid(Bent([](auto* m) {
                  m->mutable_layout()->mutable_groups(0)->set_dtype(static_cast<v1::Dtype>(7));
                }),
                "dtype is 7");
  ExpectInvalid(
      Bent([](auto* m) {
        m->mutable_layout()->mutable_groups(0)->set_scales(static_cast<v1::ScaleKind>(-1));
      }),
      "scales is 4294967295");
}

TEST(NamespaceConversion, RefusesOtherKeySchemes) {
  ExpectInvalid(Bent([](auto* m) { m->set_key_scheme(0); }), "key_scheme is 0");
}

TEST(NamespaceConversion, RefusesAMissingLayout) {
  ExpectInvalid(Bent([](auto* m) { m->clear_layout(); }), "layout.version is 0");
}

TEST(NamespaceConversion, RefusesLongFields) {
  ExpectInvalid(Bent([](auto* m) { m->set_model(std::string(257, 'm')); }), "model has 257 bytes");
}

TEST(NamespaceConversion, RecurrentStateIsAPreconditionThatFails) {
  const absl::Status status = Bent([](auto* m) {
    m->mutable_layout()->mutable_groups(0)->set_kind(v1::GROUP_KIND_RECURRENT_STATE);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace cairn::testing
