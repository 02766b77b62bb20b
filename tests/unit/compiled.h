// Programs that a test compiles for itself, and what other tools say about them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/result.h"

namespace weir::test {

namespace fs = std::filesystem;

// A directory for what the tests compile, gone at the end.
inline const fs::path& scratch() {
  struct Directory {
    fs::path path;
    Directory() {
      std::string name = fs::temp_directory_path() / "weir_test.XXXXXX";
      CHECK(mkdtemp(name.data()));
      path = name;
    }
    ~Directory() { fs::remove_all(path); }
  };
  static Directory directory;
  return directory.path;
}

// What a shell command prints; it must succeed.
inline std::string output_of(const std::string& command) {
  FILE* pipe = popen(("cd " + scratch().string() + " && " + command + " 2>errors").c_str(), "r");
  CHECK(pipe);
  std::string text;
  char buffer[65536];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  if (pclose(pipe) != 0) {
    std::ifstream errors(scratch() / "errors");
    say("{} failed:\n{}", command, std::string(std::istreambuf_iterator<char>(errors), {}));
    abort();
  }
  return text;
}

inline void write_file(const std::string& name, std::string_view text) {
  std::ofstream(scratch() / name, std::ios::binary) << text;
}

// Runs `command`, which makes `name` of `source` in the file `input`.
inline std::string build(const std::string& name, const std::string& input, std::string_view source,
                         const std::string& command) {
  write_file(input, source);
  output_of(command);
  return scratch() / name;
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

}  // namespace weir::test
