"""Prose is wrapped: no line of README.md and docs/*.md has 140 columns or more.

    prose_test.py REPOSITORY

Code between fences, rows of tables, HTML comments and definitions of links may be as long as they are. The rule is first tried on planted
text, so this test can fail.
"""

import pathlib
import re
import sys

LIMIT = 140
UNWRAPPED = re.compile(r"\s*(\||\[[^\]]+\]:\s)")


def long_lines(text):
    """The numbers of lines of prose that are too long."""
    fence, is_comment = None, False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if fence:
            fence = None if stripped.startswith(fence) else fence
        elif is_comment or stripped.startswith("<!--"):
            is_comment = "-->" not in line
        elif stripped.startswith(("```", "~~~")):
            fence = stripped[:3]
        elif len(line) >= LIMIT and not UNWRAPPED.match(line):
            yield number


def self_check():
    full, long = "é" * (LIMIT - 1), "é" * LIMIT
    good = (f"{full}\n```sh\n{long}\n```\n| {long} |\n<!-- {long}\n{long} -->\n[a]: {long}\n"
            f"  ~~~\n{long}\n```\n{long}\n~~~\n<!-- {long} -->\n{full}")
    bad = {
        "paragraph": long,
        "item": f"- {long}",
        "continuation": f"- a\n  {long}",
        "heading": f"# {long}",
        "behind code": f"```\na\n```\n{long}",
        "behind a comment": f"<!-- a -->\n{long}",
        "behind a long comment": f"<!--\na\n-->\n{long}",
        "behind a table": f"| a |\n\n{long}",
        "a link": f"[{long}](a)",
    }
    wrong = [f"self-check: not found: {name}" for name, text in bad.items() if list(long_lines(text)) != [len(text.splitlines())]]
    return wrong + [f"self-check: found in good text: line {number}" for number in long_lines(good)]


def main():
    root = pathlib.Path(sys.argv[1])
    files = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    wrong = self_check()
    for path in files:
        wrong += [f"{path.relative_to(root)}:{number}: {LIMIT} columns or more" for number in long_lines(path.read_text())]
    if len(files) < 2:
        wrong.append(f"{root}: no documents")
    for line in wrong:
        print(line)
    print(f"{len(files)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
