# Job control on a terminal: an interactive shell, Ctrl-Z, jobs, fg, Ctrl-C, window size.
. "$(dirname "$0")/lib.sh"
cat >"$T/dialogue.py" <<'P'
import fcntl, os, pty, re, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
seen = ""
def expect(pattern):
    global seen
    while not (found := re.search(pattern, seen)): seen += os.read(fd, 4096).decode()
    seen = seen[found.end():]; print("seen", found.group(0).strip(), flush=True)
def say(text): os.write(fd, text.encode())
def foreground(program):                      # waits until it has the terminal and has been executed: a child of bash forgets a SIGINT before that
    while open(f"/proc/{os.tcgetpgrp(fd)}/comm").read().strip() != program: time.sleep(0.01)
say("PS1='READY''> '; PS2=; unset PROMPT_COMMAND\n"); expect("READY> ")
say("stty size; tty >/dev/null && echo on-a-terminal\n"); expect("33 77"); expect("\non-a-terminal"); expect("READY> ")
say("cat\n"); foreground("cat"); say("line\n"); expect("line\r\nline"); say("\x1a"); expect("Stopped +cat"); expect("READY> ")
say("jobs\n"); expect("Stopped +cat"); expect("READY> ")
say("fg\n"); foreground("cat"); say("again\n"); expect("again\r\nagain"); say("\x03"); expect("READY> ")
say("echo status=$?\n"); expect("\nstatus=130"); expect("READY> ")
say("sleep 100 | cat & fg\n"); expect("sleep 100 \\| cat\r\n"); foreground("sleep"); say("\x03"); expect("READY> ")
say("exit 7\n")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
P
same python3 "$T/dialogue.py" bash --norc --noprofile --noediting -i
