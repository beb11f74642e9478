// Fields, frames and fingerprints: every field enters the fingerprint, no two lists of fields have
// the same bytes, and malformed ones are refused in words that name the field.
#include "common/identity/namespace.h"

#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "absl/hash/hash.h"
#include "common/identity/frame.h"
#include "tests/testing/identity_samples.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::SampleNamespace;

void ExpectInvalid(const Namespace& name_space, const std::string& words) {
  const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(name_space);
  EXPECT_EQ(fingerprint.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fingerprint.status().message()), HasSubstr(words));
}

TEST(NamespaceTest, EveryFieldEntersTheFingerprint) {
  const std::function<void(Namespace&)> bends[] = {
      [](Namespace&) {},
      [](Namespace& n) { n.model += "x"; },
      [](Namespace& n) { n.revision += "x"; },
      [](Namespace& n) { n.numerics += "x"; },
      [](Namespace& n) { n.key_scheme = KeyScheme::kExternal; },
      [](Namespace& n) { n.layout.block_tokens = 32; },
      [](Namespace& n) { n.layout.slices = 2; },
      [](Namespace& n) { n.layout.groups.push_back(n.layout.groups[0]); },
      [](Namespace& n) { n.layout.groups[0].kind = GroupKind::kDraft; },
      [](Namespace& n) {
        n.layout.groups.push_back(n.layout.groups[0]);
        n.layout.groups[1].required = 0;
      },
      [](Namespace& n) { n.layout.groups[0].layers = 3; },
      [](Namespace& n) { n.layout.groups[0].kv_heads = 16; },
      [](Namespace& n) { n.layout.groups[0].key_dim = 32; },
      [](Namespace& n) { n.layout.groups[0].value_dim = 32; },
      [](Namespace& n) { n.layout.groups[0].dtype = Dtype::kFloat16; },
      [](Namespace& n) { n.layout.groups[0].scales = ScaleKind::kPerHead; },
      [](Namespace& n) {
        n.layout.groups[0].kind = GroupKind::kSlidingWindow;
        n.layout.groups[0].window_tokens = 64;
      },
      [](Namespace& n) {
        n.layout.groups[0].dtype = Dtype::kOpaque;
        n.layout.groups[0].opaque_bytes = 7;
      },
  };
  std::set<Fingerprint> seen;
  for (const auto& bend : bends) {
    Namespace name_space = SampleNamespace();
    bend(name_space);
    const absl::StatusOr<Fingerprint> fingerprint = FingerprintOf(name_space);
    ASSERT_TRUE(fingerprint.ok()) << fingerprint.status();
    EXPECT_TRUE(seen.insert(*fingerprint).second);
  }
}

TEST(NamespaceTest, BytesThatMoveToTheNextFieldChangeTheFingerprint) {
  Namespace left = SampleNamespace();
  Namespace right = SampleNamespace();
  left.model = "a", left.revision = "bc";
  right.model = "ab", right.revision = "c";
  EXPECT_NE(*FingerprintOf(left), *FingerprintOf(right));
}

TEST(NamespaceTest, StringsHoldAtMost256BytesOfUtf8) {
  Namespace name_space = SampleNamespace();
  name_space.model = std::string(256, 'm');
  EXPECT_TRUE(FingerprintOf(name_space).ok());
  name_space.model += 'm';
  ExpectInvalid(name_space, "namespace.model has 257 bytes; allowed: up to 256");
  name_space = SampleNamespace();
  name_space.revision = "\xff";
  ExpectInvalid(name_space, "namespace.revision is not well-formed UTF-8");
}

TEST(NamespaceTest, NumericsAreRawAndHoldAtMost256Bytes) {
  Namespace name_space = SampleNamespace();
  name_space.numerics = std::string(256, '\xff');
  EXPECT_TRUE(FingerprintOf(name_space).ok());
  name_space.numerics += '\0';
  ExpectInvalid(name_space, "namespace.numerics has 257 bytes");
}

TEST(NamespaceTest, KeySchemeIsOneOrTwo) {
  Namespace name_space = SampleNamespace();
  for (uint32_t scheme : {0u, 3u}) {
    name_space.key_scheme = static_cast<KeyScheme>(scheme);
    ExpectInvalid(name_space, "namespace.key_scheme is " + std::to_string(scheme));
  }
}

TEST(NamespaceTest, ABadLayoutHasNoFingerprint) {
  Namespace name_space = SampleNamespace();
  name_space.layout.groups[0].layers = 0;
  ExpectInvalid(name_space, "layers is 0");
  name_space.layout.groups[0].kind = GroupKind::kRecurrentState;
  EXPECT_EQ(FingerprintOf(name_space).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FingerprintTest, ReadsExactly32Bytes) {
  const Fingerprint fingerprint = *FingerprintOf(SampleNamespace());
  EXPECT_EQ(Fingerprint::FromBytes(fingerprint.view()), fingerprint);
  EXPECT_EQ(Fingerprint::FromBytes(std::string(31, 'x')), std::nullopt);
  EXPECT_EQ(Fingerprint::FromBytes(std::string(33, 'x')), std::nullopt);
  EXPECT_EQ(fingerprint.root().view(), fingerprint.view().substr(0, 16));
}

TEST(FingerprintTest, EqualOnesHashAlike) {
  const Fingerprint a = *FingerprintOf(SampleNamespace());
  const Fingerprint b = *Fingerprint::FromBytes(a.view());
  EXPECT_EQ(absl::HashOf(a), absl::HashOf(b));
  EXPECT_NE(absl::HashOf(a), absl::HashOf(Fingerprint{}));
}

TEST(FrameTest, AnEmptyFieldIsFramedToo) {
  std::string out;
  AppendFramed(&out, 0x01020304, "");
  AppendFramed(&out, 2, "xy");
  EXPECT_EQ(out, std::string("\4\3\2\1\0\0\0\0\2\0\0\0\2\0\0\0xy", 18));
}

TEST(FrameTest, KnowsWellFormedUtf8) {
  for (absl::string_view good :
       {"", "a", "\xc3\xa9", "\xe6\xa8\xa1", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
        "a\xc2\x80z", "\xed\x9f\xbf", "\xee\x80\x80"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  EXPECT_TRUE(IsUtf8(absl::string_view("a\0b", 3)));
}

TEST(FrameTest, KnowsWhatIsNotUtf8) {
  const std::pair<const char*, absl::string_view> bad[] = {
      {"lone continuation", "\x80"},
      {"overlong two", "\xc0\x80"},
      {"overlong two", "\xc1\xbf"},
      {"overlong three", "\xe0\x9f\xbf"},
      {"overlong four", "\xf0\x8f\xbf\xbf"},
      {"first surrogate", "\xed\xa0\x80"},
      {"last surrogate", "\xed\xbf\xbf"},
      {"past the last code point", "\xf4\x90\x80\x80"},
      {"lead of five", "\xf8\x88\x80\x80\x80"},
      {"cut after the lead", "a\xc3"},
      {"cut in the middle", "\xe6\xa8"},
      {"lead where one must follow", "\xe6\xe6\xa8"},
      {"never a byte", "\xfe"},
      {"never a byte", "\xff"},
  };
  for (const auto& [what, bytes] : bad) EXPECT_FALSE(IsUtf8(bytes)) << what;
}

}  // namespace
}  // namespace cairn
