# Names that are derived without the debug file of the C library, as on a plain Debian, against its symbols: none is wrong.
# What chooses a variant, jumps to or refers to a function is found again with objdump.
. "$(dirname "$0")/lib.sh"
need sqlite3 objdump nm python3
libc=$(ldd /bin/true | awk '/libc.so/ { print $3 }')
id=$(readelf -n "$libc" | sed -n 's/.*Build ID: //p')
debug=/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
[[ -e $debug ]] || skip 'the C library has no debug file here'
export WEIR_DEBUG_DIRECTORY=/nowhere
profile python3 -c 'import json; print(len(json.dumps([str(i) * 3 for i in range(5000)])))'
ask "SELECT f.offset, f.size, n.text, coalesce(f.named_by, ''), EXISTS (SELECT 1 FROM function_count c WHERE c.function = f.id AND c.total > 0)
     FROM function f JOIN string n ON n.id = f.name JOIN image i ON i.id = f.image WHERE i.path = '$(realpath "$libc")'" >"$T/functions"
nm "$debug" >"$T/symbols"
nm -D "$libc" >"$T/exported"
objdump -d --no-show-raw-insn "$libc" >"$T/code"
python3 - "$T" <<'P'
import bisect, collections, re, sys
t = sys.argv[1]
functions = sorted(tuple(f[:2]) + (f[2], f[3], f[4]) for f in
                   ((int(o), int(s), n, b, int(r)) for o, s, n, b, r in (line.rstrip('\n').split('|') for line in open(t + '/functions'))))
begins = [f[0] for f in functions]
names = collections.defaultdict(set)
for line in open(t + '/symbols'):
    if m := re.match(r'([0-9a-f]+) ([tTWwiI]) (\S+)', line): names[int(m[1], 16)].add(m[3].split('@')[0])
begin_of = {n: a for a, them in names.items() for n in them}
symbols = sorted(names)
def function_at(a):
    i = bisect.bisect_right(begins, a) - 1
    if i >= 0 and a < functions[i][0] + functions[i][1]: return i
    last = names[symbols[bisect.bisect_right(symbols, a) - 1]]  # what stands apart of a function is the function
    whole = [begin_of[n.removesuffix('.cold')] for n in last if n.endswith('.cold') and n.removesuffix('.cold') in begin_of]
    return function_at(whole[0]) if whole else None
exported = collections.defaultdict(set)  # all names of what an exported name stands for
for line in open(t + '/exported'):
    if m := re.match(r'([0-9a-f]+) ([TWi]) (\S+)', line): exported[int(m[1], 16)].add(m[3].split('@')[0])
same = {n: group for group in exported.values() for n in group}
refers = collections.defaultdict(set)  # begin of a function -> functions that name a place in it
jumps_only = {}
for line in open(t + '/code'):
    m = re.match(r'\s*([0-9a-f]+):\s+(\S+)(.*)', line)
    if not m: continue
    target = re.search(r'# ([0-9a-f]+)', m[3]) if m[2] == 'lea' else re.match(r'\s+([0-9a-f]+)\b', m[3]) if re.match(r'(bnd )?(j|call)', m[2]) else None
    if m[2] in ('bnd', 'notrack'): target = re.match(r'\s+(?:jmp|call)\s+([0-9a-f]+)\b', m[3])
    if not target: continue
    to, by = function_at(int(target[1], 16)), function_at(int(m[1], 16))
    if to is not None and to != by: refers[to].add(by)
wrong, counted = [], collections.Counter()
plain = lambda n: re.sub(r'^_*(GI_|libc_)?_*', '', n)
def said(i):  # the names in front of the brackets
    return functions[i][2].rsplit(' [', 1)[0].removeprefix('in ').removesuffix('…').split('/')
by_begin = {}
for i, (offset, size, name, by, ran) in enumerate(functions):
    counted[by or ('symbol' if '+0x' not in name else 'bare')] += 1
    if ran: counted['ran: ' + (by or ('symbol' if '+0x' not in name else 'bare'))] += 1
    truth = set().union(*(names[a] for a in range(offset, offset + 16) if a in names)) if offset not in names else names[offset]
    if by == 'variant':
        # __memmove_avx_unaligned_erms, __memcpy_avx_unaligned_erms: each of these is one of the names, and each name stands for one of these
        variants = {re.split(r'_(?:sse|avx|evex|ssse|erms|c$|generic|syscall|unaligned|fma)', plain(n))[0] for n in truth}
        allowed = {plain(a) for n in said(i) for a in same.get(n, {n})}
        if not variants & allowed or ('…' not in name and not variants <= allowed): wrong.append((name, truth))
    elif by == 'jump':
        if not any(functions[f][2] in said(i) for f in refers[i]): wrong.append((name, truth))
    elif by == 'users':
        direct = {functions[f][2] for f in refers[i] if f is not None and functions[f][3] == '' and '+0x' not in functions[f][2]}
        if None in refers[i] or ('…' not in name and not direct <= set(said(i)) and not direct <= {n for s in said(i) for n in same.get(s, {s})}): wrong.append((name, direct, truth))
    elif by == 'start': wrong.append((name, truth))
print(dict(counted))
for w in wrong: print('wrong:', *w)
sys.exit(bool(wrong) or counted['variant'] < 50 or counted['users'] < 100)
P
