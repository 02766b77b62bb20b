# Kept translations never serve a program that they do not belong to, be it of the same build id, nor when damaged.
. "$(dirname "$0")/lib.sh"
for n in 1 2; do
  compile program$n.c -DN=$n -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 <<'C'
#include "posix.h"
__attribute__((noinline)) static int value(int n) { return N == 1 ? n * 3 + 1 : (n ^ 0x55) - 9; }
int main() { for (volatile int i = 0; i < 5; i++) printf("%d: %d\n", N, value(i)); if (N == 2) puts("second"); return N; }
C
done
both() { STATUS=1 same "$T/program1"; STATUS=2 same "$T/program2"; }
both; STATUS=2 same "$T/program2"; both
[[ $(find "$HOME/.cache/weir" -type f -size +0) ]] || fail 'no translations are kept'
for damage in flip-61 flip-7 flip-4099 flip-70001 garbage truncate; do
  find "$HOME/.cache/weir" -type f | sort | python3 -c '
import sys
damage = sys.argv[1]
for number, name in enumerate(sys.stdin.read().split()):
    data = bytearray(open(name, "rb").read())
    if damage == "truncate":
        data = data[:len(data) * (number % 4) // 4]
    elif damage == "garbage":  # behind a head that is as it should be
        data[200:] = bytes(i * 37 % 251 for i in range(200, len(data)))
    else:
        for i in range(64, len(data), int(damage[5:])): data[i] ^= 1 << i % 8
    open(name, "wb").write(data)' $damage
  both
done
# Somebody patches a program, and gives it its old date again.
compile patched.c <<'C'
#include "posix.h"
__attribute__((noinline)) static int value(void) { __asm__ volatile(""); return 0x11223344; }
int main() { for (int i = 0; i < 3; i++) printf("%x\n", value()); return 0; }
C
same "$T/patched"; same "$T/patched"
cp -p "$T/patched" "$T/date"
python3 - "$T/patched" <<'P'
import sys
data = open(sys.argv[1], "rb").read()
assert data.count(b"\xb8\x44\x33\x22\x11") == 1
with open(sys.argv[1], "r+b") as out: out.write(data.replace(b"\xb8\x44\x33\x22\x11", b"\xb8\x55\x33\x22\x11"))
P
touch -r "$T/date" "$T/patched"
same "$T/patched"
