# spec 3, S7: time in the kernel of a program that another one has executed, however late Weir comes: after its entry, too. With all processors busy
# Weir's guardian, which has copies of the guards at first, comes to run late.
. "$(dirname "$0")/lib.sh"
busy=()
for ((i = 0; i < $(nproc); i++)); do while :; do :; done & busy+=($!); done
trap 'kill "${busy[@]}"; rm -rf "$T"' EXIT
cat >"$T/read.py" <<'P'
import sys
zeros, room = open('/dev/zero', 'rb', buffering=0), bytearray(1 << 20)
for _ in range(8000): zeros.readinto(room)
sys.exit(7)
P
for ((i = 0; i < 12; i++)); do
  STATUS=7 RATE=1000 sampled sh -c "exec /usr/bin/python3 -ISB $T/read.py"
  seen=$(ask 'SELECT samples FROM sampling')
  ((seen > 60)) || fail "$seen samples: $(report)"
done
