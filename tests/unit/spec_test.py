"""Cited clauses are there: every "spec 1, T4" in comments and documents names a clause of docs/spec.md.

    spec_test.py REPOSITORY

docs/spec.md defines a clause as an item "- **T4, title.**" (or, without a name, "- **Title.**") of a section "## 1. title".
A citation is "spec 1, T4", "spec 1: T1–T3, A1 and A8", 'spec 1, "Speed and truth"' or "spec T4"; in a comment or a document also "(T4)";
and what a comment begins with: "T4: ...". Ranges are all that is between their ends. Without a section the name must stand in one
section only. Other words of a letter and a number are none ("V8 compiles"). The rules are first tried on planted text, so this test can
fail.
"""

import pathlib
import re
import sys

SPEC = "docs/spec.md"
ROOTS = ("README.md", "docs", "man", "src", "tests", "viewer/src", "viewer/test", "viewer/e2e")
COMMENTS = {  # suffix -> what begins a comment
    **dict.fromkeys((".h", ".cc", ".c", ".S", ".inc", ".ts", ".tsx", ".mjs", ".go", ".rs"), r"//|/\*"),
    **dict.fromkeys((".sh", ".py", ".cmake", ".txt"), r"(?:^|(?<=\s))#"),
}
DOCUMENTS = (".md", ".scd")

NAME = r"[A-Z]\d{1,2}"
ITEM = rf'{NAME}(?:(?:–|-| to ){NAME})?'
LIST = rf"{ITEM}(?:(?:, | and |, and ){ITEM})*"
WITH_SECTION = re.compile(rf'\bspec (\d)(?:, |: | )({LIST}(?:(?:, | and |, and )"[^"]+")?|"[^"]+")')
WITHOUT_SECTION = re.compile(rf"\bspec ({LIST})\b")
IN_BRACKETS = re.compile(rf"\(({LIST})\)")
BEGINS_COMMENT = re.compile(rf"\s*({LIST})(?:[:.,]|\s*$)")


def clauses(text):
    """The clauses that docs/spec.md defines, as (section, name), and what is wrong with their definitions."""
    found, wrong, section = set(), [], None
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"## (\d)\. ", line):
            section = heading[1]
        elif item := re.match(rf"- \*\*(?:({NAME}), [^*]+|([A-Z][^*,]*))\.\*\*(.*)", line):
            clause = (section, item[1] or item[2])
            if section is None or clause in found:
                wrong.append(f"{SPEC}:{number}: {clause[1]}: " + ("stands in no section" if section is None else "is defined twice"))
            if not item[3].strip():
                wrong.append(f"{SPEC}:{number}: {clause[1]}: says nothing")
            found.add(clause)
    return found, wrong


def names_in(words):
    """"T1–T3, A8" -> T1 T2 T3 A8; a quoted title stays as it is."""
    for title in re.findall(r'"([^"]+)"', words):
        yield title
    for first, last in re.findall(rf"({NAME})(?:(?:–|-| to )({NAME}))?", re.sub(r'"[^"]+"', "", words)):
        if last and last[0] == first[0]:
            yield from (f"{first[0]}{n}" for n in range(int(first[1:]), int(last[1:]) + 1))
        else:
            yield from filter(None, (first, last))


def prose_of(path, text):
    """(line number, text, is it a comment) for all that is written for people: comments of sources, documents without their code."""
    suffix = pathlib.PurePath(path).suffix
    is_fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if suffix in DOCUMENTS:
            if line.lstrip().startswith("```"):
                is_fenced = not is_fenced
            elif not is_fenced:
                yield number, line, False
        elif comment := re.search(COMMENTS[suffix], line):
            yield number, line[comment.end():], True


def citations(path, text, letters):
    """(line number, section or None, name) of each clause that `text` cites. Without "spec" only names with one of `letters` count."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in WITH_SECTION.finditer(line):
            yield from ((number, match[1], name) for name in names_in(match[2]))
        for match in WITHOUT_SECTION.finditer(line):
            yield from ((number, None, name) for name in names_in(match[1]))
    for number, line, is_comment in prose_of(path, text):
        bare = [match[1] for match in IN_BRACKETS.finditer(line)]
        if is_comment and (match := BEGINS_COMMENT.match(line)):
            bare.append(match[1])
        yield from ((number, None, name) for words in bare for name in names_in(words) if name[0] in letters)


def check(sources):
    """What is wrong in `sources`, a dictionary from paths in the repository to their text; and how many citations there are."""
    defined, wrong = clauses(sources.get(SPEC, ""))
    letters = {name[0] for _, name in defined if re.fullmatch(NAME, name)}
    count = 0
    for path, text in sorted(sources.items()):
        for line, section, name in citations(path, text, letters):
            count += 1
            where = sorted(s for s, n in defined if n == name and section in (None, s))
            if not where:
                wrong.append(f"{path}:{line}: {name}: no such clause" + (f" in section {section}" if section else "") + f" of {SPEC}")
            elif len(where) > 1:
                wrong.append(f"{path}:{line}: {name}: which one? " + ", ".join(f"spec {s}, {name}" for s in where))
    return wrong, count


def self_check():
    """Every kind of citation is seen, wrong ones are found, and what is none is left alone."""
    spec = ("## 1. One\n\n- **T1, a.** It does.\n- **T2, b.** It does.\n- **S1, c.** It does.\n- **Speed and truth.** Yes.\n"
            "## 3. Two\n- **S1, d.** It does.\n- **S2, e.** So.\n")
    bad = {
        "section": ("a.sh", "# spec 3, T1: works"),
        "name": ("a.sh", "# spec 1, T3: works"),
        "range": ("a.h", "// spec 1: T1–T3"),
        "range in words": ("a.h", "// spec 1, T1 to T3: so"),
        "second of a list": ("a.py", "x = 1  # spec 1, T1 and T5"),
        "behind a semicolon": ("a.cc", "f();  // (T1), (T9)"),
        "title": ("a.sh", '# spec 1, "Speed"'),
        "title in a list": ("a.sh", '# spec 1, T1 and "Speed"'),
        "without section": ("a.inc", "// class (spec X4)"),
        "in a text": ("a.py", 'fail("spec 1, T7")'),
        "in brackets": ("a.ts", "// a path (T7)"),
        "at the beginning": ("a.tsx", "  // T7: so"),
        "alone": ("a.cc", "int a;  // T7"),
        "in a document": ("docs/a.md", "It is so (T7)."),
        "ambiguous": ("a.cc", "// S1: so"),
        "defined twice": (SPEC, spec + "- **S1, f.** It does.\n"),
        "defined nowhere": (SPEC, "- **T1, a.** It does.\n" + spec),
        "empty": (SPEC, spec + "- **S3, f.**\n"),
    }
    good = {
        "a.sh": '# spec 1, S1 and "Speed and truth": so\ngcc -O2 x.c  # V8: none of ours\nanswers <<E2\nE2\n',
        "b.sh": '# spec 3, S1 to S2; spec 1: T1, T2, and S1; spec 1, "Speed and truth"\n',
        "a.cc": "int a = f(T9);  // (T1), (S2) and (F10)\n// T2\n// V8 compiles, (V8)\n// C5 P op\n",
        "a.md": "weir diff A1 A2 : T8 T9\n```\n// (T9)\n```\nso (T1 to T2)\n",
    }
    wrong = []
    for name, (path, text) in bad.items():
        found, _ = check({SPEC: spec} | {path: text})
        if len(found) != 1:
            wrong.append(f"self-check: {name}: found {found}")
    found, count = check({SPEC: spec} | good)
    wrong += [f"self-check: found in good text: {line}" for line in found]
    if count != 13:
        wrong.append(f"self-check: {count} citations in good text, not 13")
    return wrong


def main():
    root = pathlib.Path(sys.argv[1])
    files = [f for r in ROOTS for f in ([root / r] if (root / r).is_file() else (root / r).rglob("*"))]
    here = pathlib.Path(__file__).name  # its planted citations are none
    sources = {str(f.relative_to(root)): f.read_text() for f in sorted(files)
               if f.is_file() and (f.suffix in COMMENTS or f.suffix in DOCUMENTS) and f.name != here}
    found, count = check(sources)
    wrong = self_check() + found
    if SPEC not in sources or count < 100:
        wrong.append(f"{root}: {count} citations: that cannot be all")
    for line in wrong:
        print(line)
    print(f"{len(sources)} files, {count} citations, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
