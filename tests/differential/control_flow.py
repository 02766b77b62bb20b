"""A random program of nothing but control flow, in assembly, and an interpreter that knows what each of its calls takes.

A function is a list of pieces: instructions of which only the last may go elsewhere. Where it goes is decided by a generator of random
numbers in r15, which the interpreter has, too. r14 is fuel, taken at the begin of functions and of loops: without any a function
returns. Any piece may be led to in several ways: one behind a call, above all, is also where tables of jumps lead. Functions that call
others at their ends come before those, so that such chains are short."""
import collections, random

MULTIPLIER, INCREMENT, MASK = 0x5851F42D4C957F2D, 0x14057B7EF767814F, (1 << 64) - 1
FILLERS = ["nop", "lea 1(%rdx), %rdx", "xor %edx, %ecx", "add $3, %ecx", "test %edx, %edx", "imul %ecx, %ecx", "mov %ecx, %edx"]
DRAW = ["imul multiplier(%rip), %r15", "add increment(%rip), %r15", "mov %r15, %rax", "shr $56, %rax"]  # eax: 8 good bits
START = "start"  # the site of what nobody calls

Piece = collections.namedtuple("Piece", "label lines action targets")  # targets: labels of pieces, or names of functions
Call = collections.namedtuple("Call", "calls total least most", defaults=(0, 0, None, None))


class Program:
    def __init__(self, seed, fuel=1500):
        self.random = random.Random(seed)
        self.fuel, self.seed = fuel, self.random.randrange(1 << 64)
        self.data = [".balign 8", f"multiplier: .quad {MULTIPLIER:#x}", f"increment: .quad {INCREMENT:#x}"]
        self.functions = {}
        count = self.random.randrange(3, 12)
        for n in range(count):
            self.functions[f"f{n}"] = self.function(n, count)
        starts = [f"f{self.random.randrange(count)}" for _ in range(self.random.randrange(2, 7))]
        begin = [f"movabs ${self.seed:#x}, %r15", f"mov ${fuel}, %r14d"]
        pieces = [Piece(f"p_start_{n}", [*(begin if n == 0 else []), f"call {f}"], "call", [f]) for n, f in enumerate(starts)]
        self.functions["_start"] = pieces + [Piece("p_start_end", ["mov $60, %eax", "xor %edi, %edi", "syscall"], "exit", [])]
        self.pieces = {p.label: p for pieces in self.functions.values() for p in pieces}

    def function(self, number, count):
        """Its pieces, in their order."""
        r, name = self.random, f"f{number}"
        room, pushes = r.choice([0, 0, 8, 24, 200, 4200]), r.random() < 0.3
        enter = (["push %rbx"] if pushes else []) + ([f"sub ${room}, %rsp"] if room else [])
        leave = ([f"add ${room}, %rsp"] if room else []) + (["pop %rbx"] if pushes else [])
        later, is_leaf = [f"f{n}" for n in range(number + 1, count)], r.random() < 0.35
        size = r.randrange(1, 5 if is_leaf else 14)
        ends = ["return", "tail", "indirect tail"] if later and not is_leaf else ["return"]
        inner = ["fall", "fall", "jump", "branch", "branch", *ends]
        if not is_leaf:
            inner += ["switch"] * 3 + ["call"] * 7 + ["indirect call"] * 3 + ["again"]
        kinds = [r.choice(inner) for _ in range(size - 1)] + [r.choice(ends)]
        behind = [n + 1 for n, kind in enumerate(kinds) if "call" in kind]
        place = lambda: r.choice(behind) if behind and r.random() < 0.6 else r.randrange(size)
        many = {"branch": 2, "switch": r.choice([2, 4, 8]), "indirect call": r.choice([1, 2, 4]), "indirect tail": r.choice([1, 2, 4])}
        targets = []
        for kind in kinds:
            pick = place if kind in ("jump", "again", "branch", "switch") else \
                (lambda: f"f{r.randrange(count)}") if "call" in kind else (lambda: r.choice(later))
            targets.append([] if kind in ("fall", "return") else [pick() for _ in range(many.get(kind, 1))])
        loops = {t for n, all_targets in enumerate(targets) for t in all_targets if isinstance(t, int) and t <= n}
        label, no_fuel = lambda n: f"p_{name}_{n}", f"p_{name}_{'no_fuel' if leave else 'out'}"
        pieces = [Piece(f"p_{name}_entry", ["dec %r14", f"js p_{name}_out"], "fuel", [f"p_{name}_out"])]
        if enter:
            pieces.append(Piece(f"p_{name}_enter", enter, "fall", []))
        for n, kind in enumerate(kinds):
            own = label(n)
            if n in loops:
                pieces.append(Piece(own, ["dec %r14", f"js {no_fuel}"], "fuel", [no_fuel]))
                own += "_body"
            to = [label(t) if isinstance(t, int) else t for t in targets[n]]
            pieces += self.block(own, kind, to, [r.choice(FILLERS) for _ in range(r.randrange(0, 4))], leave)
        if leave:
            pieces.append(Piece(no_fuel, leave, "fall", []))
        return pieces + [Piece(f"p_{name}_out", ["ret"], "return", [])]

    def block(self, label, kind, to, fillers, leave):
        table = f"t{label[1:]}"
        choose = [*DRAW, f"and ${len(to) - 1}, %eax", f"lea {table}(%rip), %rcx"]
        if kind == "fall":
            return [Piece(label, fillers or ["nop"], "fall", [])]
        if kind == "jump":
            return [Piece(label, [*fillers, f"jmp {to[0]}"], "jump", to)]
        if kind == "branch":
            return [Piece(label, [*fillers, *DRAW, "test $1, %al", f"jnz {to[0]}"], "branch", to[:1]),
                    Piece(f"{label}_else", [f"jmp {to[1]}"], "jump", to[1:])]
        if kind == "again":  # a return to where nobody called
            return [Piece(label, [*fillers, f"lea {to[0]}(%rip), %rax", "push %rax", "ret"], "jump", to)]
        if kind == "switch":
            self.data += [".balign 4", f"{table}:"] + [f".long {t} - {table}" for t in to]
            return [Piece(label, [*fillers, *choose, "movslq (%rcx,%rax,4), %rax", "add %rcx, %rax", "jmp *%rax"], "switch", to)]
        if kind == "return":
            return [Piece(label, [*fillers, *leave, "ret"], "return", [])]
        if kind == "call":
            return [Piece(label, [*fillers, f"call {to[0]}"], "call", to)]
        if kind == "tail":
            return [Piece(label, [*fillers, *leave, f"jmp {to[0]}"], "tail", to)]
        self.data += [".balign 8", f"{table}:"] + [f".quad {t}" for t in to]
        go = ["call *%rax"] if kind == "indirect call" else [*leave, "jmp *%rax"]
        return [Piece(label, [*fillers, *choose, "mov (%rcx,%rax,8), %rax", *go], kind, to)]

    def assembly(self):
        """p_… are the pieces, and c_… the instructions that end them."""
        text = [".text"]
        for name, pieces in self.functions.items():
            text += [f".globl {name}", f".type {name}, @function", f"{name}:"]
            for p in pieces:
                text += [f"{p.label}:", *p.lines[:-1], f"c{p.label[1:]}: {p.lines[-1]}"]
            text.append(f".size {name}, . - {name}")
        return "\n".join([*text, ".section .rodata", *self.data]) + "\n"


class Run:
    """What the program does, where each piece costs as said: `counts` of pieces; `calls` by site and callee; `self` by function."""

    Frame = collections.namedtuple("Frame", "site callee begin is_tail")

    def __init__(self, program, cost):
        self.counts, self.calls, self.self = collections.Counter(), collections.defaultdict(Call), collections.Counter()
        self.clock, self.state, self.fuel = 0, program.seed, program.fuel
        self.frames, self.own, self.depth = [], [], collections.Counter()
        following = {p.label: q.label for pieces in program.functions.values() for p, q in zip(pieces, pieces[1:])}
        entry = {name: pieces[0].label for name, pieces in program.functions.items()}
        returns = []  # labels
        self.push(START, "_start", False)
        label = entry["_start"]
        while label:
            p = program.pieces[label]
            self.counts[label] += 1
            self.clock += cost[label]
            self.self[self.frames[-1].callee] += cost[label]
            self.own[-1] += cost[label]
            end = "c" + label[1:]
            label = following.get(label)
            if p.action == "jump":
                label = p.targets[0]
            elif p.action == "fuel":
                self.fuel -= 1
                label = p.targets[0] if self.fuel < 0 else label
            elif p.action == "branch":
                label = p.targets[0] if self.draw() & 1 else label
            elif p.action == "switch":
                label = self.choose(p.targets)
            elif p.action == "return":
                self.leave()
                label = returns.pop()
            elif p.action != "fall":
                if p.action == "exit":
                    break
                callee = self.choose(p.targets) if "indirect" in p.action else p.targets[0]
                if "call" in p.action:
                    returns.append(label)
                self.push(end, callee, "tail" in p.action)
                label = entry[callee]
        self.leave()

    def draw(self):
        self.state = (self.state * MULTIPLIER + INCREMENT) & MASK
        return self.state >> 56

    def choose(self, targets):
        return targets[self.draw() & (len(targets) - 1)]

    def push(self, site, callee, is_tail):
        self.frames.append(self.Frame(site, callee, self.clock, is_tail))
        self.own.append(0)
        self.depth[callee] += 1

    def leave(self):
        """A call returns, and with it those that it was called for at their ends."""
        is_tail = True
        while is_tail:
            site, callee, begin, is_tail = self.frames.pop()
            own = self.own.pop()
            self.depth[callee] -= 1
            c = self.calls[site, callee]
            total = c.total + (0 if self.depth[callee] else self.clock - begin)
            least, most = (own, own) if c.least is None else (min(c.least, own), max(c.most, own))
            self.calls[site, callee] = Call(c.calls + 1, total, least, most)
