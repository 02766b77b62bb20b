# Programs that write into the runtime's memory and forge requests: Weir ends, and ends as it should. (./dev stress hostile
# does more of it, with sanitizers.)
. "$(dirname "$0")/lib.sh"
for way in run icount profile paths attach attach-profile; do
  /usr/bin/python3 -B "$HERE/../hostile/hostile.py" --weir "$WEIR" --only $way --count 2 --seconds 1 --seed 7 || fail "$way"
done
