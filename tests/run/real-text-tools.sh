# Awk, sed, grep, bc, diff, xargs, jq, file and friends.
. "$(dirname "$0")/lib.sh"
seq 5000 | sed 's/$/ some text/' >"$T/data"
same awk '{ a[$1 % 13] += length($0); gsub(/e/, "E") } NR % 1000 == 0 { print NR, $0, substr($2, 2) } END { for (i = 0; i < 13; i++) printf "%d %.3f\n", a[i], sqrt(a[i]) }' "$T/data"
same awk 'BEGIN { while (("seq 3 | tac" | getline line) > 0) print "got " line; print system("exit 3") }'
same sed -n -E '/9{2}/{s/([0-9]+) (some)/\2-\1/;p;h}; ${g;y/abc/xyz/;p}' "$T/data"
same grep -nE '^(1|2)[0-9]*7 s' "$T/data"
STATUS=1 same grep nothing "$T/data"
same bash -c "echo 'scale=50; 4*a(1); 2^200; sqrt(2)' | bc -l; seq 20 | paste -sd+ | bc"
sed "s/^42/forty-two/" "$T/data" >"$T/other"
STATUS=1 same diff "$T/data" "$T/other"
same bash -c "find $T -name data | xargs -I{} wc -l {}; ls --version | head -n 1; file -b /bin/true; printf '{\"a\":[1,2,{\"b\":null}]}' | jq -c '.a | length, .[2]'"
same python3 -c 'import sys; print(sys.version); import sqlite3, ssl, decimal, asyncio; print(decimal.Decimal(2).sqrt()); asyncio.run(asyncio.sleep(0.01))'
