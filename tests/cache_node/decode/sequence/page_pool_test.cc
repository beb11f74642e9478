// The pool of pages: what is reserved can be taken, nobody gets another one's bytes, and the budget
// holds whatever sizes are asked for.
#include "cache_node/decode/sequence/page_pool.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace cairn::node {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPage = 1024;
constexpr uint64_t kPool = 64 * 4096;  // 64 slabs of 4 pages each.

class PagePoolTest : public ::testing::Test {
 protected:
  PageReservation Reserve(uint64_t pages, const std::string& tenant = "t",
                          uint64_t page_bytes = kPage) {
    auto reservation = pool_.Reserve(tenant, page_bytes, pages);
    EXPECT_TRUE(reservation.ok()) << reservation.status();
    return *std::move(reservation);
  }
  absl::Status Refusal(uint64_t pages, const std::string& tenant = "t",
                       uint64_t page_bytes = kPage) {
    return pool_.Reserve(tenant, page_bytes, pages).status();
  }
  ~PagePoolTest() override {
    EXPECT_TRUE(pool_.Audit().ok()) << pool_.Audit();
    EXPECT_EQ(pool_.used_bytes() + pool_.reserved_bytes(), 0u);
    EXPECT_EQ(pool_.BytesOf("t"), 0u);
  }
  void Audit() { EXPECT_TRUE(pool_.Audit().ok()) << pool_.Audit(); }

  PagePool pool_{{.bytes_max = kPool}};
};

TEST_F(PagePoolTest, WhatIsReservedIsBackedAndCanBeTaken) {
  PageReservation reservation = Reserve(3);
  EXPECT_EQ(pool_.reserved_bytes(), 3 * kPage);
  EXPECT_GE(pool_.mapped_bytes(), 3 * kPage);
  std::vector<PageRef> pages;
  for (int i = 0; i < 3; ++i) pages.push_back(reservation.Take());
  EXPECT_EQ(reservation.pages(), 0u);
  EXPECT_EQ(pool_.used_bytes(), 3 * kPage);
  EXPECT_EQ(pool_.BytesOf("t"), 3 * kPage);
  EXPECT_NE(pages[0].bytes().data(), pages[1].bytes().data());
  for (const PageRef& page : pages) {
    EXPECT_EQ(page.bytes().size(), kPage);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page.bytes().data()) % 64, 0u);
  }
  Audit();
}

TEST_F(PagePoolTest, NoPagesAreGivenTwiceAndTheBudgetIsFirm) {
  PageReservation most = Reserve(kPool / kPage * 7 / 8);
  const absl::Status share = Refusal(1);
  EXPECT_EQ(share.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(share.message(), HasSubstr("share"));
  // One tenant cannot have all: another finds the last eighth.
  PageReservation rest = Reserve(kPool / kPage / 8, "u");
  const absl::Status full = Refusal(1, "v");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr(": 0 of 262144 bytes"));
  EXPECT_EQ(pool_.mapped_bytes(), kPool);
  Audit();
}

TEST_F(PagePoolTest, AbsurdWishesAreRefused) {
  EXPECT_FALSE(Refusal(UINT64_MAX).ok());
  EXPECT_FALSE(Refusal(UINT64_MAX / kPage).ok());
  EXPECT_FALSE(Refusal(1, "t", uint64_t{1} << 40).ok());
  PagePool none({.bytes_max = 0});
  EXPECT_FALSE(none.Reserve("t", kPage, 1).ok());
  EXPECT_TRUE(none.Reserve("t", kPage, 0).ok());
}

TEST_F(PagePoolTest, APageTakenIsZeros) {
  PageReservation first = Reserve(4);
  for (int i = 0; i < 4; ++i) {
    const PageRef page = first.Take();
    std::memset(page.bytes().data(), 0xff, kPage);
  }
  first = PageReservation();
  PageReservation second = Reserve(4, "u");
  for (int i = 0; i < 4; ++i) {
    const PageRef page = second.Take();
    EXPECT_TRUE(std::all_of(page.bytes().begin(), page.bytes().end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::memset(page.bytes().data(), 0xff, kPage);
  }
}

TEST_F(PagePoolTest, ACopyHasTheBytesAndALifeOfItsOwn) {
  PageReservation reservation = Reserve(2);
  PageRef page = reservation.Take();
  std::memset(page.bytes().data(), 7, kPage);
  PageRef copy = reservation.TakeCopyOf(page);
  EXPECT_FALSE(page.shared());
  std::memset(page.bytes().data(), 8, kPage);
  EXPECT_EQ(copy.bytes()[kPage - 1], std::byte{7});
}

TEST_F(PagePoolTest, APageLivesAsLongAsItsLastUse) {
  PageReservation reservation = Reserve(1);
  PageRef page = reservation.Take();
  PageRef other = page.Share();
  EXPECT_TRUE(page.shared());
  EXPECT_FALSE(reservation.Return(std::move(page)));  // Not the last use: no right comes back.
  EXPECT_EQ(reservation.pages(), 0u);
  EXPECT_FALSE(other.shared());
  EXPECT_TRUE(reservation.Return(std::move(other)));
  EXPECT_EQ(reservation.pages(), 1u);
  EXPECT_EQ(pool_.used_bytes(), 0u);
  Audit();
}

TEST_F(PagePoolTest, SlabsGoToWhoeverNeedsThem) {
  EXPECT_EQ(pool_.PagesFree(16384), 16u);
  { PageReservation small = Reserve(kPool / kPage * 7 / 8); }
  EXPECT_EQ(pool_.PagesFree(16384), 16u);
  EXPECT_EQ(pool_.PagesFree(kPage), kPool / kPage);
  EXPECT_EQ(pool_.mapped_bytes(), kPool * 7 / 8);
  // Larger than a slab: one page each.
  PageReservation large = Reserve(10, "t", 16384);
  EXPECT_LE(pool_.mapped_bytes(), kPool);
  EXPECT_EQ(pool_.PagesFree(16384), 6u);
  PageRef page = large.Take();
  EXPECT_EQ(page.bytes().size(), 16384u);
  Audit();
}

TEST_F(PagePoolTest, PagesInUseAreNotTakenAwayByAnotherSize) {
  std::vector<PageRef> kept;
  {
    PageReservation small = Reserve(kPool / kPage * 7 / 8);
    std::vector<PageRef> taken;
    while (small.pages() > 0) taken.push_back(small.Take());
    // One page of each slab stays: nothing of another size fits.
    for (size_t i = 0; i < taken.size(); i += 4) kept.push_back(std::move(taken[i]));
  }
  for (const PageRef& page : kept) std::memset(page.bytes().data(), 1, kPage);
  EXPECT_FALSE(Refusal(3, "u", 16384).ok());
  EXPECT_TRUE(Refusal(1, "u", 16384).ok());
  // But of the same size.
  { PageReservation again = Reserve(100); }
  Audit();
}

TEST_F(PagePoolTest, SplitAndJoinedRightsAreOne) {
  PageReservation all = Reserve(5);
  PageReservation part = all.Split(2);
  EXPECT_EQ(all.pages(), 3u);
  EXPECT_EQ(pool_.reserved_bytes(), 5 * kPage);
  all.Join(std::move(part));
  EXPECT_EQ(all.pages(), 5u);
  all.Shrink(4);
  EXPECT_EQ(pool_.reserved_bytes(), kPage);
  PageReservation moved = std::move(all);
  EXPECT_EQ(moved.pages(), 1u);
  Audit();
}

TEST_F(PagePoolTest, RandomUseNeverBreaksAReservation) {
  std::mt19937_64 random(11);
  struct Holder {
    PageReservation reservation;
    std::vector<PageRef> pages;
    uint8_t mark = 0;
  };
  std::vector<Holder> holders;
  const uint64_t sizes[] = {64, 1024, 1088, 4096, 9984};
  for (int step = 0; step < 4000; ++step) {
    const size_t action = random() % 5;
    if (action == 0 || holders.empty()) {
      auto reservation = pool_.Reserve(std::string(1, static_cast<char>('a' + random() % 3)),
                                       sizes[random() % 5], random() % 20);
      if (!reservation.ok()) continue;
      holders.push_back({.reservation = *std::move(reservation),
                         .pages = {},
                         .mark = static_cast<uint8_t>(1 + random() % 255)});
      continue;
    }
    Holder& holder = holders[random() % holders.size()];
    if (action == 1) {
      std::swap(holder, holders.back());
      for (const PageRef& page : holders.back().pages) {
        ASSERT_EQ(page.bytes()[page.bytes().size() - 1], std::byte{holders.back().mark});
      }
      holders.pop_back();
    } else if (action == 2 && !holder.pages.empty()) {
      EXPECT_TRUE(holder.reservation.Return(std::move(holder.pages.back())));
      holder.pages.pop_back();
    } else {
      while (holder.reservation.pages() > 0) {
        holder.pages.push_back(holder.reservation.Take());
        const absl::Span<std::byte> bytes = holder.pages.back().bytes();
        ASSERT_EQ(bytes[0], std::byte{0});
        ASSERT_EQ(bytes[bytes.size() - 1], std::byte{0});
        std::memset(bytes.data(), holder.mark, bytes.size());
      }
    }
    ASSERT_TRUE(pool_.Audit().ok()) << pool_.Audit();
  }
  holders.clear();
}

}  // namespace
}  // namespace cairn::node
