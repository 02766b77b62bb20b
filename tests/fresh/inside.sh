#!/usr/bin/env bash
# inside.sh DIRECTORY LOGS PATTERN "TURNS" VARIABLE=VALUE…: the part of fresh.sh that runs in namespaces of its own for mounts and processes.
# Each turn leaves LOGS/TURN-demo.log, .status and LOGS/TURN-test.log, .status; "busy" has an endless loop for each processor beside it.
set -euo pipefail
directory=$1 logs=$2 pattern=$3 turns=$4
variables=("${@:5}")
trap 'exit 130' INT  # (the first process of a namespace gets only signals that it handles)
trap 'exit 143' TERM HUP

mount --bind "$directory" "$directory"  # (what is a mount can be the root of other namespaces)
mount -t proc proc "$directory/proc"
mount --rbind /sys "$directory/sys"
mount --rbind /dev "$directory/dev"
mount -t tmpfs -o mode=1777 tmpfs "$directory/dev/shm"
ulimit -c 0
umask 022

# attempt TURN NAME COMMAND…: in the tree that was cloned, with an environment of its own.
attempt() {
  local turn=$1 name=$2 status=passed begin=$SECONDS; shift 2
  echo "fresh: $turn: $* (see $logs/$turn-$name.log)" >&2
  chroot "$directory" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${variables[@]}" \
    bash -c 'cd /srv/weir && exec "$@"' - "$@" </dev/null >"$logs/$turn-$name.log" 2>&1 || status="failed ($?)"
  echo "fresh: $turn: $* $status after $(((SECONDS - begin) / 60)) min $(((SECONDS - begin) % 60)) s" >&2
  echo "$status" >"$logs/$turn-$name.status"
}

for turn in $turns; do
  loops=()
  if [[ $turn == busy ]]; then
    for ((i = 0; i < $(nproc); i++)); do (while :; do :; done) & loops+=($!); done
  fi
  attempt "$turn" demo ./dev demo
  attempt "$turn" test ./dev test ${pattern:+"$pattern"}
  ((!${#loops[@]})) || kill "${loops[@]}"
done
