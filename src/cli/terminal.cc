#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace weir::cli {
namespace {

// The variable, or nothing where it is not set or empty.
std::string variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

size_t width_of(int stream) {
  if (std::string columns = variable("COLUMNS"); !columns.empty()) {
    long n = strtol(columns.c_str(), nullptr, 10);
    if (n >= 20 && n <= 10000) return static_cast<size_t>(n);
  }
  winsize size{};
  if (isatty(stream) && ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return isatty(stream) ? 80 : 0;
}

}  // namespace

report::Style style_of_stdout(report::Format format, const std::string& colour) {
  bool text = format == report::Format::Text;
  bool terminal = isatty(1) && variable("TERM") != "dumb" && variable("NO_COLOR").empty();
  return {format, text ? width_of(1) : 0, text && (colour == "always" || (colour == "auto" && terminal))};
}

report::Style style_of_messages() {
  constexpr size_t prefix = std::string_view("weir: ").size();
  size_t width = width_of(2);
  return {report::Format::Text, width > prefix ? width - prefix : 0, false};
}

// Only when there is something to show: an error should not wait in a pager.
void Screen::start_pager() {
  wanted_ = false;
  std::string program = variable("WEIR_PAGER");
  if (program.empty()) program = variable("PAGER");
  if (program.empty()) program = "less";
  int ends[2];
  if (!isatty(1) || program == "cat" || pipe2(ends, O_CLOEXEC) != 0) return;
  pager_ = fork();
  if (pager_ == 0) {
    dup2(ends[0], 0);
    setenv("LESS", "FRX", 0);  // quit if it fits one screen, colours, leave it there
    setenv("LESSCHARSET", "utf-8", 0);
    execl("/bin/sh", "sh", "-c", program.c_str(), nullptr);
    _exit(127);
  }
  if (pager_ > 0) {
    dup2(ends[1], 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);  // ^C is the pager's
  }
  close(ends[0]);
  close(ends[1]);
}

bool Screen::write(std::string_view text) {
  if (wanted_) start_pager();
  while (!text.empty()) {
    ssize_t n = ::write(1, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return pager_ > 0 && errno == EPIPE;  // a pager that was left early is no failure
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Screen::~Screen() {
  if (pager_ <= 0) return;
  close(1);  // the end of what it reads
  waitpid(pager_, nullptr, 0);
}

}  // namespace weir::cli
