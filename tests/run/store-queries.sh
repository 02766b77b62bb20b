# The ten queries of docs/store.md are run as they stand there, by sqlite3, and their answers are known.
. "$(dirname "$0")/lib.sh"
need sqlite3 python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" tables "$T/tables.weir"
"$FIXTURE" rich "$T/rich.weir"
"$FIXTURE" sampled "$T/sampled.weir"
python3 - "$HERE/../../docs/store.md" "$T" <<'P'
import re, sys, textwrap
text = open(sys.argv[1]).read()
queries = re.findall(r'^ *```sql\n(.*?)^ *```', text, re.S | re.M)
for i, q in enumerate(queries, 1):
    open(f'{sys.argv[2]}/{i}.sql', 'w').write(textwrap.dedent(q))
print(len(queries))
P
[[ $(ls "$T"/*.sql | wc -l) == 10 ]] || fail "not ten queries"
ask() { sqlite3 -bail "$T/$1.weir" <"$T/$2.sql" || fail "query $2 fails on $1"; }
expect() {  # expect FIXTURE NUMBER <<END
  local got; got=$(ask "$1" "$2")
  [[ $got == "$(cat)" ]] || fail "query $2 on $1 gives"$'\n'"$got"
}
for i in {1..10}; do ask tables "$i" >/dev/null; ask rich "$i" >/dev/null; ask sampled "$i" >/dev/null; done
expect tables 1 <<'END'
D|80|40000|39.56
C|1|30000|29.67
B|1|20000|19.78
A|1|10000|9.89
main|1|1000|0.99
start|1|100|0.1
END
[[ $(ask sampled 1 | head -n 1) == 'fib||490|49.0' ]] || fail "query 1: $(ask sampled 1)"
expect tables 2 <<'END'
B|40|30000
C|40|10000
END
expect tables 3 <<'END'
A+0|B|1|50000
A+0x5|C|1|40000
END
[[ $(ask tables 4 | head -n 1) == '/src/tables.c|2|160|39200' ]] || fail "query 4: $(ask tables 4)"
# With threads, too: a line ran as often as all of them ran it.
sqlite3 "$T/tables.weir" 'INSERT INTO thread SELECT 7777, process, 7777, name, cycles, instructions, os_time, waited FROM thread LIMIT 1;
  INSERT INTO block_count SELECT block, 7777, count, extra FROM block_count'
[[ $(ask tables 4 | head -n 1) == '/src/tables.c|2|320|78400' ]] || fail "query 4 with threads: $(ask tables 4)"
"$FIXTURE" tables "$T/tables.weir"
expect tables 5 <<<'report'
[[ $(ask rich 6 | head -n 1) == 'nanosleep|2|1|8000|timed' ]] || fail "query 6: $(ask rich 6)"
[[ $(ask rich 7 | tail -n 1) == '101|101|child|177|9000' ]] || fail "query 7: $(ask rich 7)"
expect tables 8 <<'END'
0|start|1|101100
1|main|1|101000
2|A|1|100000
3|B|1|50000
4|D|40|30000
END
expect rich 9 <<<'square(int)|800'
expect tables 10 <<<''
[[ $(ask rich 10 | wc -l) == 4 ]] || fail "query 10: $(ask rich 10)"
[[ $(sqlite3 "$T/tables.weir" 'PRAGMA integrity_check') == ok ]] || fail "SQLite finds faults"
[[ $(sqlite3 "$T/tables.weir" 'PRAGMA application_id; PRAGMA user_version; SELECT schema FROM weir') == $'1466263922\n6\n6' ]] || fail "versions"
