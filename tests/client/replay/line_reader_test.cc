// Small files written by each test, plain, gzipped and damaged.
#include "client/replay/line_reader.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/client/replay/trace_file.h"

namespace cairn::replay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Lines {
  std::vector<std::string> text;
  std::vector<uint64_t> numbers;
  absl::Status end;
};

Lines ReadLines(const std::string& path) {
  Lines lines;
  auto reader = LineReader::Open(path);
  if (!reader.ok()) return {{}, {}, reader.status()};
  while (true) {
    auto line = (*reader)->Next();
    lines.end = line.status();
    if (!line.ok() || !line->has_value()) return lines;
    lines.text.emplace_back(**line);
    lines.numbers.push_back((*reader)->line_number());
  }
}

TEST(LineReader, GivesLinesWithoutTheirEndsAndPassesOverBlankOnes) {
  const TraceFile file("one\n\n  \ntwo\r\nthree");
  const Lines lines = ReadLines(file.path());
  EXPECT_THAT(lines.text, ElementsAre("one", "two", "three"));
  EXPECT_THAT(lines.numbers, ElementsAre(1, 4, 5));
  EXPECT_TRUE(lines.end.ok());
}

TEST(LineReader, ReadsGzippedFilesTheSame) {
  // Longer than any buffer, so that lines cross its ends.
  std::string text;
  std::vector<std::string> wanted;
  for (int i = 0; i < 5000; ++i) {
    wanted.push_back(std::string(1 + static_cast<size_t>(i) % 300, 'x') + std::to_string(i));
    text += wanted.back() + "\n";
  }
  EXPECT_EQ(ReadLines(TraceFile(text).path()).text, wanted);
  EXPECT_EQ(ReadLines(TraceFile(text, TraceFile::Form::kGzipped).path()).text, wanted);
}

TEST(LineReader, PeekLeavesTheLineToBeRead) {
  const TraceFile file("one\ntwo\n");
  auto reader = LineReader::Open(file.path());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(**(*reader)->Peek(), "one");
  EXPECT_EQ(**(*reader)->Peek(), "one");
  EXPECT_EQ(**(*reader)->Next(), "one");
  EXPECT_EQ(**(*reader)->Next(), "two");
  EXPECT_FALSE((*reader)->Next()->has_value());
  EXPECT_FALSE((*reader)->Peek()->has_value());
}

TEST(LineReader, ALineLongerThanTheBoundIsRefused) {
  const TraceFile file("short\n" + std::string(kLineBytesMax + 1, 'x'), TraceFile::Form::kGzipped);
  const Lines lines = ReadLines(file.path());
  EXPECT_THAT(lines.text, ElementsAre("short"));
  EXPECT_EQ(lines.end.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lines.end.message()), HasSubstr(file.path() + ":2: "));
}

TEST(LineReader, ACutGzippedFileIsDataLossAfterWhatIsWhole) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919 % 100003) + "\n";
  const TraceFile file(text, TraceFile::Form::kGzipped);
  file.Truncate(std::filesystem::file_size(file.path()) / 2);
  const Lines lines = ReadLines(file.path());
  EXPECT_GT(lines.text.size(), 1000u);
  EXPECT_EQ(lines.end.code(), absl::StatusCode::kDataLoss) << lines.end;
  EXPECT_THAT(std::string(lines.end.message()), HasSubstr(file.path()));
}

TEST(LineReader, AMissingFileIsNotFoundWithItsPathAndReason) {
  const Lines lines = ReadLines("/nonexistent/trace.jsonl");
  EXPECT_EQ(lines.end.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(lines.end.message()),
              AllOf(HasSubstr("/nonexistent/trace.jsonl"), HasSubstr("No such file")));
}

TEST(LineReader, AFolderIsNotReadAsAFile) {
  const Lines lines = ReadLines(std::filesystem::temp_directory_path());
  EXPECT_EQ(lines.end.code(), absl::StatusCode::kDataLoss) << lines.end;
}

}  // namespace
}  // namespace cairn::replay
