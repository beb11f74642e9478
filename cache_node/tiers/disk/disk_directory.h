// DiskDirectory: the folder of a disk tier: who has it, what wrote it, what is left over in it.
//
// Locked while it lives, against other processes and against this one; the lock goes with the
// process. What a version wrote that this one does not know is set aside, and deleted when its room
// is needed. Thread-safe, blocks on the disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn::node {

class DiskDirectory {
 public:
  // Makes it when it is missing. FAILED_PRECONDITION when it is in use, is no folder or may not be
  // written, naming it; no other error keeps a node from starting.
  static absl::StatusOr<std::unique_ptr<DiskDirectory>> Open(const std::string& path);
  ~DiskDirectory();

  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string payload() const { return path_ + "/payload"; }
  std::string ledger() const { return path_ + "/ledger"; }
  std::string staging() const { return path_ + "/staging"; }  // Files that are being built.
  std::string rebuild() const { return path_ + "/rebuild"; }
  std::string ballast() const { return path_ + "/ballast"; }

  // UNAVAILABLE when the folder is not at path() any more: it was deleted, moved, or another is in
  // its place, which may be another node's. To be called before anything is written by its path.
  absl::Status CheckHeld() const;

  // Reads which version wrote it; clears what another did, and what is half made. To be called
  // until it is OK, before anything of it is used.
  absl::Status Prepare();
  // Of what is in it. New ones are to be kept by WriteFormat.
  const std::string& identity() const { return identity_; }
  bool is_new() const { return is_new_; }
  // Everything in it belongs to identity().
  absl::Status WriteFormat();
  // Deletes payload and ledger and begins a new identity.
  absl::Status Wipe();

  // Makes the folder for files that are being built, if it is missing.
  absl::Status MakeStaging();

  // Whether files here can be read and written past the page cache.
  bool SupportsDirectIo() const;

  // What was set aside.
  uint64_t SetAsideBytes() const;
  absl::Status DeleteSetAside();

 private:
  DiskDirectory(std::string path, int lock_fd);
  std::string format() const { return path_ + "/FORMAT"; }
  std::string set_aside() const { return path_ + "/set_aside"; }
  absl::Status SetAside();
  absl::Status ClearStaging();

  const std::string path_;
  const int lock_fd_;
  std::string identity_;
  bool is_new_ = false;
};

}  // namespace cairn::node
