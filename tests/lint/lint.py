#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of the house that no compiler knows.

    lint.py [ROOT]

Prints "file:line: what is wrong and what to do", one a line, and exits with 1
when there was anything. Only the standard library is needed. The checks:

- #include lines against the layer table (layers.txt), and that the table has
  no cycle;
- calls that are not used here, with what to use instead;
- every function that a header declares has a comment: directly before it,
  beside it, or with the first of a group of declarations without blank lines;
- every C file begins with the licence line and a comment that says what it is;
- a function body of at most 60 lines and a file of at most 500, unless the
  file's comment gives the reason in a line that begins with "Size:";
- every fuzz target has a corpus;
- no trailing white space, no missing line feed at the end, nothing marked as
  still to be done.
"""

import os
import re
import sys

SPDX = "SPDX-License-Identifier: Apache-2.0"
# Some of what a kernel program calls, the kernel has for programs under its own licence only.
SPDX_KERNEL = SPDX + " OR GPL-2.0-only"
FUNCTION_MAX = 60
FILE_MAX = 500

COPY = "copy a known length with memcpy()"
FORMAT = "snprintf()"
NUMBER = "digits_parse() of base/digits.h, or strtoul() with every check"
BANNED = {
    "strcpy": COPY,
    "stpcpy": COPY,
    "strcat": COPY,
    "sprintf": FORMAT,
    "vsprintf": "vsnprintf()",
    "gets": "fgets() or getline()",
    "strtok": "memchr() over a known length, or strtok_r()",
    "alloca": "a buffer with a named maximum",
    "system": "execve() with an argument vector",
    "popen": "pipe2() and execve() with an argument vector",
    "atoi": NUMBER,
    "atol": NUMBER,
    "atoll": NUMBER,
    "atof": "strtod() with every check",
    "rand": "getrandom()",
    "srand": "getrandom()",
    "mktemp": "mkostemp()",
    "tmpnam": "mkostemp()",
    "gethostbyname": "proxy/upstream/resolver.h",
    "getaddrinfo": "proxy/upstream/resolver.h: the C library's resolver reads files and plug-ins",
    "inet_addr": "addr_parse() of base/addr.h",
    "inet_aton": "addr_parse() of base/addr.h",
}
# A test may ask the C library for a second opinion.
ALLOWED_IN_TESTS = {"getaddrinfo", "inet_aton"}
BANNED_CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
TEXT = (".c", ".h", ".py", ".sh", ".md", ".mk", ".txt", ".yaml", ".yml", ".nft", ".1", ".5", ".7", ".8")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Layers:
    """The layer table: which folder may include which, and which system headers it may not."""

    def __init__(self, path, name):
        self.allowed = {}
        self.forbidden = {}
        self.errors = []
        wild = []
        with open(path, encoding="utf-8") as f:
            for n, line in enumerate(f, 1):
                line = line.split("#")[0].strip()
                m = re.fullmatch(r"([\w/-]+)(:| !)\s*(.*)", line)
                if not line:
                    continue
                if not m:
                    self.errors.append((name, n, f'not "FOLDER: FOLDERS" or "FOLDER ! HEADERS": {line}'))
                elif m[2] == " !":
                    self.forbidden.setdefault(m[1], []).extend(m[3].split())
                elif m[1] in self.allowed:
                    self.errors.append((name, n, f"{m[1]} is listed twice"))
                else:
                    self.allowed[m[1]] = m[3].split()
                    if m[3] == "*":
                        wild.append(m[1])
        plain = [folder for folder in self.allowed if folder not in wild]
        for folder in wild:
            self.allowed[folder] = plain
        for folder in [*self.forbidden, *(b for to in self.allowed.values() for b in to)]:
            if folder not in self.allowed:
                self.errors.append((name, 1, f"{folder} is used but has no line of its own"))
        cycle = self.find_cycle()
        if cycle:
            self.errors.append((name, 1, "the table has a cycle: " + " -> ".join(cycle)))

    def find_cycle(self):
        """A list of folders that ends where it began, or None."""
        done = set()
        for start in self.allowed:
            path = [start]
            choices = [iter(self.allowed[start])]
            while path:
                step = next(choices[-1], None)
                if step is None:
                    done.add(path.pop())
                    choices.pop()
                elif step in path:
                    return path[path.index(step):] + [step]
                elif step not in done and step in self.allowed:
                    path.append(step)
                    choices.append(iter(self.allowed[step]))
        return None

    def folder_of(self, path):
        """The listed folder that holds `path`, the longest one; or None."""
        held = [f for f in self.allowed if path.startswith(f + "/")]
        return max(held, key=len, default=None)


def blank(text):
    """C text with every comment and literal turned into spaces, so that positions and lines stay."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def spaces(m):
        return re.sub(r"[^\n]", " ", m[0])

    return token.sub(spaces, text)


def blank_directives(code):
    """The same for preprocessor directives, with their continued lines."""
    directive = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M | re.S)
    return directive.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def top_level_items(code):
    """(start, end) of each declaration or definition at file scope; `end` is past its ";" or "}"."""
    depth = 0
    start = None
    for at, c in enumerate(code):
        if start is None:
            if c.isspace() or c == ";":
                continue
            start = at
        if c in "({[":
            depth += 1
        elif c in ")}]":
            depth -= 1
        ends_body = c == "}" and depth == 0 and is_function(code[start:at])
        if depth == 0 and (c == ";" or ends_body):
            yield start, at + 1
            start = None


def is_function(item):
    """True for a function's declaration or definition (not for a type, a variable or an initialiser)."""
    head = item.split("{")[0]
    if re.match(r"(typedef|_Static_assert|static_assert|extern\s+\"C\")\b", head):
        return False
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S)
    return "=" not in head and re.search(r"\w\s*\(", head) is not None


def check_layers(path, text, layers, root):
    folder = layers.folder_of(path)
    if folder is None:
        yield 1, "is in a folder that tests/lint/layers.txt does not list"
        return
    for n, line in enumerate(text.split("\n"), 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        target = m[2]
        if m[1] == "<":
            for bad in layers.forbidden.get(folder, ()):
                if target == bad or (bad.endswith("/") and target.startswith(bad)):
                    yield n, f"{folder} may not include <{target}> (tests/lint/layers.txt)"
            continue
        to = layers.folder_of(target)
        if to is None or not os.path.isfile(os.path.join(root, target)):
            yield n, f'"{target}" is no file of the project: name it from the root, or use <> for a system header'
        elif to != folder and to not in layers.allowed[folder]:
            yield n, f"{folder} may not include {to} (tests/lint/layers.txt)"


def check_banned(path, code):
    for m in BANNED_CALL.finditer(code):
        if path.startswith("tests/") and m[1] in ALLOWED_IN_TESTS:
            continue
        yield line_of(code, m.start()), f"{m[1]}() is not used here: {BANNED[m[1]]} instead"


def check_documented(text, code):
    lines = text.split("\n")
    code_lines = code.split("\n")
    group_end = 0  # the last line of the present group of declarations that have a comment
    for start, end in top_level_items(blank_directives(code)):
        if not is_function(code[start:end]):
            continue
        first, last = line_of(code, start), line_of(code, end - 1)
        # A comment behind other code documents that, not this.
        before = first >= 2 and lines[first - 2].rstrip().endswith("*/") and not code_lines[first - 2].strip()
        beside = "/*" in lines[last - 1]
        has_body = code[end - 1] == "}"
        if before or beside or (group_end == first - 1 and not has_body):
            group_end = 0 if has_body else last
        else:
            name = re.search(r"(\w+)\s*\(", code[start:end])[1]
            yield first, f"{name}() has no comment: directly before it, beside it, or before its group"


def check_top(path, text):
    lines = text.split("\n")
    spdx = SPDX_KERNEL if path.endswith(".bpf.c") else SPDX
    if lines[0] != f"/* {spdx} */":
        yield 1, f"the first line must be /* {spdx} */"
    elif len(lines) < 2 or not lines[1].startswith("/*"):
        yield 2, "a comment that says what the file is must follow the licence line"


def check_size(text, code):
    """Sizes count what a person reads: all lines of a file, the lines between a body's braces."""
    top = re.match(r"/\*.*?\*/\s*(/\*.*?\*/)?", text, re.S)
    if top and re.search(r"^ \* Size:", top[0], re.M):
        return
    n = text.count("\n")
    if n > FILE_MAX:
        yield 1, f'has {n} lines, more than {FILE_MAX}: split it, or say why in a line " * Size: ..." of its comment'
    for start, end in top_level_items(blank_directives(code)):
        item = code[start:end]
        if "{" not in item or not is_function(item):
            continue
        body = item.count("\n", item.index("{")) - 1
        if body > FUNCTION_MAX:
            name = re.search(r"(\w+)\s*\(", item)[1]
            yield line_of(code, start), f"{name}() has {body} lines, more than {FUNCTION_MAX}: split it, or say " \
                'why in a line " * Size: ..." of the file\'s comment'


def check_text(text):
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no line feed at the end"
    for n, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield n, "trailing white space"
        m = UNDONE.search(line)
        if m:
            yield n, f"{m[1]}: do it, or open an issue"


def check_corpus(path, root):
    name = os.path.basename(path)[:-2]
    corpus = os.path.join(root, "tests/fuzz/corpus", name)
    if not os.path.isdir(corpus) or not os.listdir(corpus):
        yield 1, f"has no corpus: put some small inputs into tests/fuzz/corpus/{name}/"


def check_file(path, text, layers, root):
    """All that is wrong with one file, as (line, message)."""
    yield from check_text(text)
    if not path.endswith((".c", ".h")):
        if path.endswith((".py", ".sh", ".mk")) and SPDX not in "".join(text.split("\n")[:3]):
            yield 1, f"# {SPDX} is missing at the top"
        return
    code = blank(text)
    yield from check_top(path, text)
    yield from check_layers(path, text, layers, root)
    yield from check_banned(path, code)
    yield from check_size(text, code)
    if path.endswith(".h"):
        yield from check_documented(text, code)
    if re.fullmatch(r"tests/fuzz/fuzz_\w+\.c", path):
        yield from check_corpus(path, root)


def project_files(root):
    """Every text file of the project, from the root; not what was built, and not the fuzz corpora."""
    for folder, folders, files in os.walk(root):
        here = os.path.relpath(folder, root)
        folders[:] = [d for d in folders if not (
            d in ("__pycache__", "corpus") or (d.startswith(".") and d != ".ci") or (here == "." and d.startswith("build")))]
        for name in files:
            if name.endswith(TEXT) or name in ("Makefile", "run"):
                yield os.path.normpath(os.path.join(here, name))


def lint(root):
    """Every finding in the tree at `root`, as (file, line, message), sorted."""
    table = "tests/lint/layers.txt"
    layers = Layers(os.path.join(root, table), table)
    found = list(layers.errors)
    for path in project_files(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        found.extend((path, line, message) for line, message in check_file(path, text, layers, root))
    return sorted(found)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    found = lint(root)
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
