// The kernel's floor, as a library to preload: the program gets the same perf events at the same rate as under `weir sample`
// (task-clock, sigtrap, all threads), with a handler that does nothing. EMPTY_HANDLER_HZ: the rate.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void nothing(int signal, siginfo_t *info, void *context) {}

__attribute__((constructor)) static void begin(void) {
  const char *rate = getenv("EMPTY_HANDLER_HZ");
  struct sigaction action = {.sa_sigaction = nothing, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  struct perf_event_attr a = {.size = sizeof a, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};
  sigfillset(&action.sa_mask);
  sigaction(SIGTRAP, &action, 0);
  a.sample_period = (unsigned long)(1e9 / (rate ? atof(rate) : 1000));
  a.disabled = a.sigtrap = a.remove_on_exec = a.inherit = a.inherit_thread = a.exclude_hv = 1;
  int event = syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0 || ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) perror("empty_handler: perf_event_open"), _exit(125);
}
