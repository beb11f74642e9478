#include "tests/bench/json_report.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace cairn::bench {
namespace {

std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void JsonReport::AddRaw(absl::string_view key, std::string json) {
  for (const auto& field : fields_) CAIRN_CHECK_MSG(field.first != key, key);
  fields_.emplace_back(std::string(key), std::move(json));
}

void JsonReport::Add(absl::string_view key, double value) {
  CAIRN_CHECK_MSG(std::isfinite(value), key);
  // The shortest that reads back as the same number.
  char text[32];
  const std::to_chars_result written = std::to_chars(text, text + sizeof(text), value);
  CAIRN_CHECK(written.ec == std::errc());
  AddRaw(key, std::string(text, written.ptr));
}

void JsonReport::Add(absl::string_view key, absl::string_view value) { AddRaw(key, Quoted(value)); }

double JsonReport::Number(absl::string_view key) const {
  for (const auto& [name, json] : fields_) {
    double value = 0;
    if (name != key) continue;
    CAIRN_CHECK_MSG(absl::SimpleAtod(json, &value), key);
    return value;
  }
  CheckFailed(__FILE__, __LINE__, "the key is in the report", key);
}

std::string JsonReport::ToJson() const {
  std::string out = "{";
  for (const auto& [key, json] : fields_) {
    absl::StrAppend(&out, out.size() > 1 ? ",\n " : "\n ", Quoted(key), ": ", json);
  }
  return out + "\n}\n";
}

absl::Status JsonReport::WriteTo(const std::string& path) const {
  std::ofstream file(path, std::ios::trunc);
  file << ToJson();
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

}  // namespace cairn::bench
