// DecisionStorage: where recorded decisions go, one file after another.
//
// By one thread at a time.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace cairn::router {

class DecisionStorage {
 public:
  virtual ~DecisionStorage() = default;

  // Begins an empty file; the one before it stays, and the one before that goes.
  virtual absl::Status Begin() = 0;
  // All bytes at the end of the file. After a failure a part of them may be there.
  virtual absl::Status Append(absl::string_view bytes) = 0;
};

// DecisionFiles: PATH, and PATH.1 for the last file before it that held more than next to nothing,
// on the machine's disk.
//
// New files are the owner's alone (0600). What stands at either path and is no file of decisions is
// not touched: FAILED_PRECONDITION, also where another process is writing there. Bytes go to the
// system at once and to the disk when it likes: a crash of the process loses none, one of the
// machine some.
class DecisionFiles final : public DecisionStorage {
 public:
  explicit DecisionFiles(std::string path) : path_(std::move(path)) {}
  ~DecisionFiles() override;

  DecisionFiles(const DecisionFiles&) = delete;
  DecisionFiles& operator=(const DecisionFiles&) = delete;

  absl::Status Begin() override;
  absl::Status Append(absl::string_view bytes) override;

 private:
  void Close();

  const std::string path_;
  int fd_ = -1;  // Of the file that is written, locked against other processes.
};

}  // namespace cairn::router
