// DiskTest: the real node with a disk tier in a folder of its own, killed and started again over
// it; and a small vocabulary of prompts with known bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tests/cluster/checked_payload.h"
#include "tests/cluster/node_fixture.h"
#include "tests/cluster/numbered_prompt.h"

namespace cairn::testing {

class DiskTest : public NodeTest {
 protected:
  // Of the pool, in blocks of 64 KiB.
  static constexpr size_t kPoolBlocks = 256;
  static constexpr size_t kPromptBlocks = 8;

  DiskTest();
  ~DiskTest() override;

  // A node over disk_dir(), and a client of it that has registered the namespace. More flags may
  // say otherwise.
  void StartDiskNode(const std::vector<std::string>& flags = {});
  // The flags of such a node.
  std::vector<std::string> DiskFlags() const;
  const std::string& disk_dir() const { return disk_dir_; }
  CacheNodeClient& client() { return **client_; }
  const NamespaceHandle& name_space() const { return *name_space_; }

  std::unique_ptr<NumberedPrompt> MakePrompt(uint32_t number, const std::string& salt = "") const;
  void Put(uint32_t number, const std::string& salt = "");
  // Puts prompts with these numbers, one after the other is on disk.
  void PutOnDisk(uint32_t first, uint32_t count, const std::string& salt = "");

  // Under a lease that waits for loads.
  LeasedRead ReadPrompt(uint32_t number, const std::string& salt = "");

  v1::DiskReport Disk() { return Describe().node().disk(); }
  bool AwaitDisk(absl::FunctionRef<bool(const v1::DiskReport&)> condition);
  bool AwaitRecovered();

 private:
  const std::string folder_;
  const std::string disk_dir_;
  std::unique_ptr<TestClient> client_;
  std::unique_ptr<NamespaceHandle> name_space_;
};

}  // namespace cairn::testing
