// Linked into every test program: ::testing::TempDir() is a folder of this process alone, and gone
// with it. Tests are processes that run side by side, so a file of a fixed name would be another
// test's too.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace cairn::testing {
namespace {

constexpr char kVariable[] = "TEST_TMPDIR";  // Read by ::testing::TempDir().

class OwnTempFolder {
 public:
  OwnTempFolder() : owner_(getpid()) {
    const char* base = getenv(kVariable);
    if (base == nullptr) base = getenv("TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/cairn_test_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr || setenv(kVariable, path_.c_str(), 1) != 0) {
      perror(path_.c_str());
      abort();
    }
  }
  ~OwnTempFolder() {
    if (getpid() != owner_) return;  // The child of a death test, which leaves by exit().
    std::error_code ignored;         // What a test made unremovable stays.
    std::filesystem::remove_all(path_, ignored);
  }
  OwnTempFolder(const OwnTempFolder&) = delete;
  OwnTempFolder& operator=(const OwnTempFolder&) = delete;

 private:
  const pid_t owner_;
  std::string path_;
};

const OwnTempFolder own_temp_folder;

}  // namespace
}  // namespace cairn::testing
