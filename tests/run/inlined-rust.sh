# Lines and inlined functions of optimized Rust. The truth of lines is the same program without optimization (where blocks are
# lines, see profile-lines), that of functions callgrind's calls there.
. "$(dirname "$0")/lib.sh"
need rustc valgrind jq python3
cat >"$T/r.rs" <<'R'
struct Stack<T> { items: Vec<T> }
impl<T: Copy> Stack<T> {
    fn push(&mut self, v: T) {
        self.items.push(v);
    }
    fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }
}
fn sum(values: &[u64]) -> u64 {
    let mut total = 0u64;
    for v in values {
        total = total.wrapping_mul(31).wrapping_add(*v);
    }
    total
}
fn classify(n: u64) -> u64 {
    if n % 3 == 0 {
        return n / 3;
    }
    if n % 5 == 0 {
        return n + 7;
    }
    n ^ 1
}
fn main() {
    let mut s = Stack { items: Vec::new() };
    let mut x = 1u64;
    let mut all = Vec::new();
    for i in 0..1000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        s.push(classify(x >> 33));
        if i % 4 == 0 {
            all.push(s.pop().unwrap());
        }
    }
    println!("{} {}", sum(&all), sum(&s.items));
}
R
rustc -g -C opt-level=3 "$T/r.rs" -o "$T/fast"
rustc -g -C opt-level=0 "$T/r.rs" -o "$T/slow"
valgrind --tool=callgrind --callgrind-out-file="$T/callgrind" "$T/slow" >/dev/null 2>&1
for name in slow fast; do
  profile "$T/$name"
  report source r.rs --format json >"$T/$name.lines"
  report functions --limit 0 --format json >"$T/$name.functions"
done
python3 - "$T" <<'P'
import json, re, sys
t = sys.argv[1]
counts = {name: {r["line"]: r["count"] for r in json.load(open(f"{t}/{name}.lines"))["rows"] if r["count"]} for name in ("slow", "fast")}
names, calls, callee = {}, {}, ""
for line in open(f"{t}/callgrind"):
    if m := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
        if m[2]: names[m[1]] = m[2]
        callee = names[m[1]]
    elif m := re.match(r"calls=(\d+)", line): calls[callee] = calls.get(callee, 0) + int(m[1])
both = counts["slow"].keys() & counts["fast"].keys()
bad = [(n, counts["slow"][n], counts["fast"][n]) for n in sorted(both) if counts["slow"][n] != counts["fast"][n]]
print(len(both), "lines; line, without and with optimization:", bad)
entered = {f["name"]: (f["calls"], f["inlined"]) for f in json.load(open(f"{t}/fast.functions"))["functions"] if f["name"].startswith("r::")}
wrong = {name: (calls[name], n) for name, n in entered.items() if name in calls and calls[name] != n[0]}
print(entered, "callgrind differs:", wrong)
# push() is taken into the arms of what is pushed: the debug information names one copy as its beginning.
sys.exit(len(both) < 9 or len(bad) > 2 or entered["r::classify"] != (1000, 1000) or entered["r::sum"] != (2, 2) or
         any(not name.endswith(("::push", "::main")) for name in wrong))
P
