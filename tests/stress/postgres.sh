#!/usr/bin/env bash
# postgres.sh WEIR: PostgreSQL's server under pgbench, natively, under `weir run` and under `weir profile`. Four clients: no transaction may
# fail, and the books must balance. Then one client with fixed random numbers: the tables must be those of the native run.
set -euo pipefail
weir=$(realpath "$1") transactions=${2:-300}
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
directory=$(mktemp -d /tmp/weir-postgres.XXXXXX)
as=()
((EUID)) || { as=(runuser -u postgres --); chown postgres "$directory"; }  # the server refuses to be root
cd "$directory"
server=
stop() { [[ ! $server ]] || { "${as[@]}" "$bin/pg_ctl" -D data -m fast stop >/dev/null; wait "$server" || { echo "FAIL: the server ended with $?"; exit 1; }; server=; }; }
trap 'stop; rm -rf "$directory"' EXIT
ask() { "${as[@]}" psql -h "$directory" -At -c "$1" postgres; }
bench() { "${as[@]}" pgbench -h "$directory" "$@" postgres; }

trial() {  # trial NAME PREFIX…
  local name=$1; shift
  rm -rf data
  "${as[@]}" "$bin/initdb" -D data -N --no-locale >/dev/null 2>&1
  "${as[@]}" "$@" "$bin/postgres" -D data -k "$directory" -c listen_addresses= -c fsync=off >"$name.log" 2>&1 & server=$!
  for ((i = 0; i < 300; i++)); do "${as[@]}" "$bin/pg_isready" -q -h "$directory" && break; sleep 0.2; done
  bench -i -q -s 1 >/dev/null 2>&1
  bench -n -c 1 -t "$transactions" --random-seed=7 >"$name.bench" 2>&1
  ask "SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM pgbench_accounts" >"$name.tables"
  ask "SELECT md5(string_agg(tid || ':' || tbalance, ',' ORDER BY tid)) FROM pgbench_tellers" >>"$name.tables"
  ask "SELECT count(*), sum(delta) FROM pgbench_history" >>"$name.tables"
  bench -n -c 4 -j 2 -C -t "$((transactions / 3))" >"$name.bench4" 2>&1
  ask "SELECT count(*), sum(delta) = (SELECT sum(abalance) FROM pgbench_accounts), sum(delta) = (SELECT sum(bbalance) FROM pgbench_branches) FROM pgbench_history" >"$name.books"
  stop
  cmp native.tables "$name.tables" || { echo "FAIL: $name: other tables"; exit 1; }
  [[ $(<"$name.books") == "$((transactions + transactions / 3 * 4))|t|t" ]] || { echo "FAIL: $name: the books say $(<"$name.books")"; exit 1; }
  grep -q 'failed transactions: 0 ' "$name.bench4" || { echo "FAIL: $name: $(<"$name.bench4")"; exit 1; }
  echo "$name: tables as natively, books balance; $(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$name.bench") transactions/s with one client, $(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$name.bench4") with four that connect each time"
}
trial native
trial run "$weir" run -q --
trial profile "$weir" profile -q -o "$directory/postgres.weir" --
"$weir" report postgres.weir summary | head -n 20
