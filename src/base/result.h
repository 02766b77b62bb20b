// What input, the OS or the target can cause is a returned Result; bugs are CHECKs, on in release.
#pragma once

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <string>

namespace weir {

// What callers ask of an error. (What it becomes as an exit status is cli/main.cc's to say.)
enum class ErrorKind : uint8_t {
  Failed,      // nobody asks
  NotFound,    // of a program that is to be run: there is none
  CannotRun,   // …: there is one, and it cannot be executed
  NoCode,      // of an address: nothing can be executed there
  WouldChange  // it takes a change of what may not be changed now
};

struct Error {
  std::string what;  // "what: why", and the remedy where there is one
  ErrorKind kind = ErrorKind::Failed;
};

template <class T = void>
using Result = std::expected<T, Error>;

template <class... Args>
std::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...)});
}

template <class... Args>
std::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...), kind});
}

// fail() with the text of errno behind it.
template <class... Args>
std::unexpected<Error> fail_errno(fmt::format_string<Args...> format, Args&&... args) {
  int saved = errno;
  return std::unexpected(Error{fmt::format("{}: {}", fmt::format(format, std::forward<Args>(args)...), strerror(saved))});
}

// One line on stderr, with Weir's prefix. Never fails: a program may run with stderr closed or full.
void put_message(std::string_view line);
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  put_message("weir: " + fmt::format(format, std::forward<Args>(args)...) + "\n");
}
// From here on, into this file.
Result<> log_to(const std::string& path);

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  fprintf(stderr, "weir: internal error: %s (%s:%d)\n", condition, file, line);
  abort();
}

}  // namespace weir

#define CHECK(condition) ((condition) ? static_cast<void>(0) : ::weir::check_failed(#condition, __FILE__, __LINE__))

// TRY(auto x, expression): x is the value, or the error is returned to the caller.
#define WEIR_CONCAT_(a, b) a##b
#define WEIR_CONCAT(a, b) WEIR_CONCAT_(a, b)
#define TRY(declaration, ...)                                                                    \
  auto WEIR_CONCAT(try_, __LINE__) = (__VA_ARGS__);                                              \
  if (!WEIR_CONCAT(try_, __LINE__)) return std::unexpected(WEIR_CONCAT(try_, __LINE__).error()); \
  declaration = std::move(*WEIR_CONCAT(try_, __LINE__))
#define TRY_VOID(...) \
  if (auto result_ = (__VA_ARGS__); !result_) return std::unexpected(result_.error())
