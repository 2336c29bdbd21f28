# SPDX-License-Identifier: Apache-2.0
"""The lint can fail: each check against a small tree with one thing wrong, and against one with nothing wrong."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
TOP = "/* SPDX-License-Identifier: Apache-2.0 */\n/* What this is. */\n"
LAYERS = """
base:
rules: base
proxy/wire: base
tests: *
proxy/wire ! stdlib.h event2/
"""


@pytest.fixture
def tree(tmp_path):
    """A function: files as {path: text} in, what lint.py prints out, as a list of lines."""

    def lint(files, layers=LAYERS):
        files = {"tests/lint/layers.txt": layers, "base/ok.h": TOP, **files}
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        done = subprocess.run([sys.executable, HERE / "lint.py", tmp_path], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.returncode == (1 if done.stdout else 0)
        return done.stdout.splitlines()

    return lint


def body(lines):
    return "int f(void)\n{\n" + "\tg();\n" * lines + "}\n"


def test_nothing_wrong(tree):
    assert tree({
        "rules/a.c": TOP + '#include "base/ok.h"\n#include <stdlib.h>\n' + body(60),
        "proxy/wire/b.h": TOP + '#include "base/ok.h"\n/* Does it. */\nint f(void);\n',
        "tests/unit/test_a.c": TOP + '#include "proxy/wire/b.h"\n#include "tests/unit/c.h"\n',
        "tests/unit/c.h": TOP,
        "tests/fuzz/fuzz_a.c": TOP,
        "tests/fuzz/corpus/fuzz_a/seed": "not text \xff, trailing space \n",
        "build/obj/x.c": "sprintf(",
    }) == []


@pytest.mark.parametrize("text, rc", [
    (".TH X 1\n.SH NAME\nx \\- it\n", 0), (".TH X 1\n.SH NAME\n.XX\n", 2), (f".TH X 1\n.SH NAME\n.TP\nx\na {'b' * 72}\n", 2),
])
def test_man_pages(tmp_path, text, rc):
    (tmp_path / "x.1").write_text(text)
    done = subprocess.run(["make", "-s", "lint-man", f"MAN_PAGES={tmp_path}/x.1"], cwd=HERE.parent.parent, capture_output=True, text=True,
                          check=False)
    assert done.returncode == rc and ("x.1:" in done.stdout) == (rc == 2), done


@pytest.mark.parametrize("path, include, message", [
    ("base/a.c", '"rules/r.h"', "base may not include rules"),
    ("rules/a.c", '"proxy/wire/w.h"', "rules may not include proxy/wire"),
    ("rules/a.c", '"r.h"', "is no file of the project"),
    ("rules/a.c", '"../base/ok.h"', "is no file of the project"),
    ("rules/a.c", '"base/missing.h"', "is no file of the project"),
    ("base/a.c", '"tests/unit/t.h"', "base may not include tests"),
    ("proxy/wire/a.c", "<stdlib.h>", "proxy/wire may not include <stdlib.h>"),
    ("proxy/wire/a.c", "<event2/event.h>", "proxy/wire may not include <event2/event.h>"),
])
def test_include_against_the_table(tree, path, include, message):
    found = tree({
        "rules/r.h": TOP, "proxy/wire/w.h": TOP, "tests/unit/t.h": TOP,
        path: TOP + f"\n#  include {include}\n",
    })
    assert len(found) == 1
    assert found[0].startswith(f"{path}:4: ")
    assert message in found[0]


def test_folder_without_a_line(tree):
    assert tree({"other/a.c": TOP}) == [
        "other/a.c:1: is in a folder that tests/lint/layers.txt does not list"]


@pytest.mark.parametrize("layers, message", [
    ("base: rules\nrules: base\n", "the table has a cycle: base -> rules -> base"),
    ("base: base\n", "the table has a cycle: base -> base"),
    ("base:\na: b\nb: c\nc: d\nd: b\n", "the table has a cycle: b -> c -> d -> b"),
    ("base: gone\n", "gone is used but has no line of its own"),
    ("base:\nbase:\n", "base is listed twice"),
    ("base:\nrules base\n", 'not "FOLDER: FOLDERS" or "FOLDER ! HEADERS": rules base'),
])
def test_bad_table(tree, layers, message):
    found = tree({}, layers)
    assert len(found) == 1
    assert message in found[0]
    assert found[0].startswith("tests/lint/layers.txt:")


def test_table_of_this_project():
    sys.path.insert(0, str(HERE))
    import lint
    layers = lint.Layers(HERE / "layers.txt", "layers.txt")
    assert layers.errors == []
    assert layers.allowed["base"] == []
    assert layers.allowed["rules"] == ["base"]
    assert layers.allowed["proxy/wire"] == ["base"]
    assert layers.allowed["sandbox-net/gate"] == ["base"]
    programs = {"proxy": "sandbox-net", "sandbox-net": "proxy", "rules": "sandbox-net"}  # whose parts never meet
    for folder, allowed in layers.allowed.items():
        other = programs.get(folder.split("/")[0])
        assert not other or not any(to.split("/")[0] == other for to in allowed), folder
    assert "sandbox-net" in layers.allowed["tests"]
    assert layers.folder_of("proxy/wire/http1.c") == "proxy/wire"
    assert layers.folder_of("proxy/main.c") is None


@pytest.mark.parametrize("call", [
    "strcpy", "strcat", "sprintf", "gets", "strtok", "alloca", "system", "popen", "atoi", "rand", "gethostbyname",
    "getaddrinfo",
])
def test_banned_call(tree, call):
    found = tree({"base/a.c": TOP + f"int f(void)\n{{\n\treturn {call} (x);\n}}\n"})
    assert len(found) == 1
    assert found[0].startswith(f"base/a.c:5: {call}() is not used here: ")
    assert found[0].endswith(" instead")


def test_calls_that_only_look_banned(tree):
    assert tree({
        "base/a.c": TOP + '// strcpy(a, b)\n/* system("x")\n * popen(\n */\nstatic const char *s = "atoi(\\"";\n'
                          "int f(void)\n{\n\tvsnprintf(b, 1, s, a);\n\tops->system(1);\n\tstrtok_r(a, b, c);\n"
                          "\tmy_rand();\n\treturn rand_max + '\"' + brand(1);\n}\n",
        "tests/unit/test_a.c": TOP + "int f(void)\n{\n\treturn inet_aton(s, &in);\n}\n",
    }) == []


@pytest.mark.parametrize("declaration", [
    "int f(void);",
    "/* About x. */\n\nint f(void);",
    "struct s;\n\nint f(int a,\n\tint b);",
    "/* First. */\nint e(void);\n\nint f(void);",
    "int x; /* not about f */\nint f(void);",
    "static inline int f(void)\n{\n\treturn 1; /* why */\n}",
    "/* Body. */\nstatic inline int e(void)\n{\n\treturn 1;\n}\nint f(void);",
    "#define M(a) \\\n\t(a)\nextern const struct s *f(int (*g)(void)) __attribute__((nonnull));",
])
def test_function_without_comment(tree, declaration):
    found = tree({"base/a.h": TOP + "\n" + declaration + "\n"})
    assert len(found) == 1
    assert "f() has no comment" in found[0]


@pytest.mark.parametrize("declaration", [
    "/* Does it. */\nint f(void);",
    "/*\n * Does it.\n */\nint f(int a,\n\tint b);",
    "int f(void); /* does it */",
    "/* A pair. */\nint e(void);\nint f(void);",
    "/* Inline. */\nstatic inline int f(void)\n{\n\tif (x) {\n\t\tg();\n\t}\n\treturn 1;\n}",
    "struct s {\n\tint (*call)(void);\n};",
    "enum e { A, B };\nextern int table[2];\n#define CALL(x) f(x)\nunion u;",
    "typedef void f_fn(void *arg);",
    '_Static_assert(sizeof(int) == 4, "int");',
])
def test_documented(tree, declaration):
    assert tree({"base/a.h": TOP + "\n" + declaration + "\n"}) == []


@pytest.mark.parametrize("text, message", [
    ("/* What this is. */\n", "base/a.c:1: the first line must be"),
    ("// SPDX-License-Identifier: Apache-2.0\n/* What. */\n", "base/a.c:1: the first line must be"),
    ("/* SPDX-License-Identifier: Apache-2.0 */\n#include <stdio.h>\n", "base/a.c:2: a comment that says what"),
    ("/* SPDX-License-Identifier: Apache-2.0 */\n\n/* What. */\n", "base/a.c:2: a comment that says what"),
])
def test_top_of_a_file(tree, text, message):
    found = tree({"base/a.c": text})
    assert len(found) == 1
    assert found[0].startswith(message)


def test_licence_of_a_kernel_program(tree):
    """It must be usable under the kernel's licence, and nothing else has that one."""
    both = TOP.replace("Apache-2.0", "Apache-2.0 OR GPL-2.0-only")
    found = tree({"base/a.bpf.c": both, "base/b.bpf.c": TOP, "base/c.c": both})
    assert [line.split(" must")[0] for line in found] == ["base/b.bpf.c:1: the first line", "base/c.c:1: the first line"]


def test_python_licence(tree):
    assert tree({"tests/a.py": "import os\n"}) == [
        "tests/a.py:1: # SPDX-License-Identifier: Apache-2.0 is missing at the top"]


SIZED = "/* SPDX-License-Identifier: Apache-2.0 */\n/*\n * What this is.\n * Size: one table.\n */\n"


def test_long_function(tree):
    found = tree({"base/a.c": TOP + "int e(void)\n{\n}\n\n" + body(61)})
    assert found == ['base/a.c:7: f() has 61 lines, more than 60: split it, or say why in a line " * Size: ..." '
                     "of the file's comment"]
    assert tree({"base/a.c": TOP + body(60)}) == []
    assert tree({"base/a.c": SIZED + body(61)}) == []


def test_long_file(tree):
    found = tree({"base/a.c": TOP + "int x;\n" * 499})
    assert found == ['base/a.c:1: has 501 lines, more than 500: split it, or say why in a line " * Size: ..." '
                     "of its comment"]
    assert tree({"base/a.c": TOP + "int x;\n" * 498}) == []
    assert tree({"base/a.c": SIZED + "int x;\n" * 600}) == []
    # Only the file's own comment counts.
    assert len(tree({"base/a.c": TOP + "int x;\n/*\n * Size: no.\n */\n" + "int x;\n" * 600})) == 1


@pytest.mark.parametrize("line, message", [
    ("int x; ", "trailing white space"),
    ("\t", "trailing white space"),
    ("/* TO" "DO: this */", "TO" "DO: do it"),
    ("/* FIX" "ME */", "FIX" "ME: do it"),
])
def test_text(tree, line, message):
    for path in ("base/a.c", "base/a.h"):
        found = tree({path: TOP + line + "\nint x;\n"})
        assert found and all(f.split(":")[1] == "3" and message in f for f in found)
        tree({path: TOP})


def test_text_of_documents(tree):
    assert tree({"docs/a.md": "One \n"}) == ["docs/a.md:1: trailing white space"]
    assert tree({"docs/a.md": "One"}) == ["docs/a.md:1: no line feed at the end"]


def test_fuzz_target_without_corpus(tree):
    assert tree({"tests/fuzz/fuzz_a.c": TOP}) == [
        "tests/fuzz/fuzz_a.c:1: has no corpus: put some small inputs into tests/fuzz/corpus/fuzz_a/"]
