# Every view as text, as JSON that jq takes, with the documented fields, and as CSV that Python's reader takes.
. "$(dirname "$0")/lib.sh"
need jq python3
FIXTURE=$(dirname "$WEIR")/tests/fixture_store
"$FIXTURE" rich "$T/rich.weir"
"$FIXTURE" source rich >"$T/rich.cc"
report() { "$WEIR" report "$T/rich.weir" "$@" --source-map "/src=$T" || fail "report $*"; }
fields() {  # fields EXPRESSION NAMES...: the rows have these fields (and maybe others)
  local expression=$1 name; shift
  for name; do
    jq -e "[$expression | has(\"$name\")] | length > 0 and all" "$T/json" >/dev/null || fail "$expression has no '$name': $(head -c 600 "$T/json")"
  done
}
for view in summary functions 'detail main' callers 'source fib' 'source rich.cc' 'asm main' tree oscalls waits coverage threads; do
  # shellcheck disable=SC2086
  { report $view >"$T/text"; report $view --format json >"$T/json"; report $view --format csv >"$T/csv"; }
  [[ -s $T/text ]] && grep -q '^data: ' "$T/text" || fail "$view: no line on the data's quality"
  grep -q $'\e' "$T/text" && fail "$view: colours without a terminal"
  [[ $(jq -r .view "$T/json") == "${view%% *}" && $(jq '.notes | length' "$T/json") == 4 ]] || fail "$view: $(head "$T/json")"
  python3 -c "
import csv, sys
rows = list(csv.reader(open('$T/csv', newline='')))
assert len(rows) > 1 and len(set(map(len, rows))) == 1, rows" || fail "$view: csv: $(head -n 3 "$T/csv")"
  case $view in
    functions) fields '.functions[]' name image file line calls self total self_min self_max os_calls os_time waited waited_total ;;
    detail*) fields '.callers[]' name site calls total; fields '.callees[]' name site calls total ;;
    source*) fields '.rows[]' line mark count self text ;;
    asm*) fields '.rows[]' offset mark count self text ;;
    tree) fields '.nodes[]' name depth calls self total ;;
    oscalls) fields '.oscalls[]' name class calls errors time waited ;;
    waits) fields '.waits[]' function call calls waited seconds; fields '.callers[]' function caller site waited ;;
    coverage) fields '.coverage[]' image file functions functions_run blocks blocks_run lines lines_run ;;
    threads) fields '.threads[]' pid tid name cycles instructions os_time waited ;;
  esac
done
report functions --format json >"$T/json"
jq -e '[.functions[].name] | any(length == 10000)' "$T/json" >/dev/null || fail "the longest name is cut in JSON"
jq -e '[.functions[].name] | any(contains("<script>") and contains("\n") and contains("\u001b"))' "$T/json" >/dev/null || fail "a name is changed in JSON"
COLUMNS=80 "$WEIR" report "$T/rich.weir" functions --color=always | grep -q $'\e\[' || fail "no colours when asked for"
COLUMNS=80 report functions | awk '{ if (length($0) > 200) exit 1 }' || fail "wider than a terminal"
# The run was made with OS calls apart; both ways can be asked for.
[[ $(report functions --format json | jq '[.functions[] | select(.name == "[read]")] | length') == 1 ]] || fail "no [read]"
[[ $(report functions --os-calls=self --format json | jq '[.functions[] | select(.name == "[read]")] | length') == 0 ]] || fail "[read]"
[[ $(report functions --thread 102 --format json | jq '[.functions[].self] | add') == 950 ]] || fail "--thread"
