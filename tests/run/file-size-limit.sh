# Where the limit on file sizes leaves no room for Weir's memory it says so: 125, in one line.
. "$(dirname "$0")/lib.sh"
for size in 0 1000; do   # a pipe, as the limit holds for what the test writes too
  said=$(ulimit -f $size; status=0; timeout $LIMIT "$WEIR" run -- touch "$T/made" 2>&1 || status=$?; echo "status $status")
  [[ $said =~ ^weir:\ [^$'\n']+$'\n'status\ 125$ ]] || fail "limit $size: $said"
  [[ ! -e $T/made ]] || fail 'the program ran'
done
