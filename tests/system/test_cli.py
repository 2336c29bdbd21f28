# SPDX-License-Identifier: Apache-2.0
"""The command line: help, errors that say what to do, policies from files, check and explain."""

import json
import os
import re
import subprocess

import pytest

from lab import v4
from lab.lab import TOP

POLICY = """version: 1
mode: enforce
allow:
  - ok.test
  - "*.wild.test"
  - raw.test:7
  - host: db.corp.example
    ports: [5432]
    addresses: [10.2.0.0/16]
  - cidr: 203.0.114.0/24
    ports: [8443]
deny:
  - x.wild.test
"""


def cli(lab, *args, stdin=None):
    return subprocess.run([os.path.join(lab.programs(), "netgate"), *args], capture_output=True, text=True, input=stdin,
                          cwd=lab.folder, timeout=60)


def policy_file(lab, text=POLICY, name="policy.yaml"):
    path = os.path.join(lab.folder, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def test_help_and_version(lab):
    for option in ("--help", "-h"):
        done = cli(lab, option)
        assert done.returncode == 0 and done.stderr == ""
        for word in ("--allow", "--deny", "--policy", "--log", "--timeout", "--workspace", "check", "explain", "verify", "124"):
            assert word in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 104
    assert cli(lab, "--version").stdout.startswith("netgate ")


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text.replace("\\-", "-")))


def read(name):
    with open(os.path.join(TOP, name)) as file:
        return file.read()


def test_every_option_is_in_help_and_manual(lab):
    known = {f"--{name}" for name in re.findall(r'^\t\{ "([a-z-]+)", \w+_argument,', read("proxy/cli/options.c"), re.MULTILINE)}
    assert "--allow" in known
    for text in (cli(lab, "--help").stdout, read("docs/man/netgate.1")):
        assert known <= options(text), known - options(text)


def test_every_option_of_the_launcher_is_in_its_manual(lab):
    def help_of(*words):
        return subprocess.run([os.path.join(lab.programs(), "sandbox-net"), *words, "--help"], capture_output=True, text=True, timeout=60).stdout

    page = read("docs/man/sandbox-net.1")
    assert options(help_of()) <= options(page)
    subcommands = re.findall(r"^  ([a-z][a-z-]+) ", help_of(), re.MULTILINE)
    assert "attach" in subcommands and "run" in subcommands
    for name in subcommands:
        listed = options("".join(re.findall(r"^  --[a-z-]+", help_of(name), re.MULTILINE))) - {"--help"}
        # What `run` has is in a section of its own, since most of it is an option of something else, too.
        place = page.partition(".SH RUN\n")[2].partition(".SH ")[0] if name == "run" else page
        assert listed <= options(place), (name, listed - options(place))


@pytest.mark.parametrize("command", ["check", "explain", "verify"])
def test_help_of_a_command(lab, command):
    """Help is asked for, so nothing is done, and it is no error; without its arguments the same text is one."""
    expected = cli(lab, "help", command).stdout
    assert expected.startswith(f"usage: netgate {command} ")
    for args in (["--help"], ["-h"], ["policy.yaml", "--help"]):
        done = cli(lab, command, *args)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, ""), done
    done = cli(lab, command)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected), done


def test_help_as_a_command(lab):
    done = cli(lab, "help")
    assert (done.returncode, done.stdout) == (0, cli(lab, "--help").stdout)
    assert cli(lab, "help", "help").stdout == done.stdout
    for words in (["foo"], ["check", "foo"]):
        done = cli(lab, "help", *words)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr == 'netgate: help: "foo": not a command; write check, explain or verify, or nothing\n'


@pytest.mark.parametrize("option,meant", [
    ("--alow", "--allow"), ("--polcy=p.yaml", "--policy"), ("--tiemout", "--timeout"), ("--pol", "--policy"), ("--a", "--allow"),
    ("--workspaces", "--workspace"), ("--xyz", None),
])
def test_options_are_written_in_full(lab, option, meant):
    done = cli(lab, option, "x", "--", "true")
    said = f"did you mean {meant}?" if meant else "see netgate --help"
    assert (done.returncode, done.stderr) == (125, f"netgate: {option.partition('=')[0]}: unknown option; {said}\n")


@pytest.mark.parametrize("option", ["--allow", "--timeout", "--read"])
def test_option_whose_argument_is_missing(lab, option):
    for rest in ([], ["--", "true"], ["--quiet", "--", "true"]):
        done = cli(lab, option, *rest)
        assert (done.returncode, done.stderr) == (125, f"netgate: {option} needs an argument; see netgate --help\n")
    assert "--x" in cli(lab, "--read=--x", "--", "true").stderr


@pytest.mark.parametrize("option,value", [
    ("--allow", ""), ("--deny", "a..b"), ("--policy", ""), ("--permits", ""), ("--choose", "../x"), ("--resolver", "foo"),
    ("--max-upload", "20"), ("--max-connections", "0"), ("--max-rate", "5"), ("--max-names", "x"), ("--idle", "1y"), ("--timeout", "20x"),
    ("--memory", "1kB"), ("--pids", "-1"), ("--cpus", "0"), ("--log", ""), ("--job", "a/b"), ("--workspace", ""), ("--read", ""),
    ("--write", ""), ("--fs", "open"), ("--user", "nobody-of-that-name"), ("--tap", "eth0"), ("--wait", "0"), ("--pid-file", ""),
    ("--ready-fd", "2"),
])
def test_value_that_cannot_be(lab, option, value):
    """One kind of message for all: which option, the value in quotes, and what is wrong with it."""
    command = ["--job", "waits"] if option in ("--wait", "--pid-file", "--ready-fd") else ["--", "true"]
    permits = ["--permits", "/nonexistent"] if option == "--choose" else []
    done = cli(lab, *permits, f"{option}={value}", *command)
    assert (done.returncode, done.stdout) == (125, ""), done
    assert done.stderr.startswith(f'netgate: {option}: "{value}": ') and done.stderr.count("\n") == 1, done.stderr


def test_option_without_argument(lab):
    for option in ("--audit=yes", "--quiet="):
        done = cli(lab, option, "--", "true")
        assert (done.returncode, done.stderr) == (125, f"netgate: {option.partition('=')[0]} takes no argument\n")
    assert cli(lab, "-qx", "--", "true").stderr == "netgate: -x: unknown option; see netgate --help\n"


@pytest.mark.parametrize("log,words", [
    ("/dev/stdout", "use --log -"), ("a/b.jsonl", "the directory a does not exist"), ("a/", "is a directory"),
    ("/nonexistent/b.jsonl", "the directory /nonexistent does not exist"), ("link.jsonl", "symbolic link"),
])
def test_log_that_cannot_be(lab, log, words):
    if log == "link.jsonl":
        os.symlink("elsewhere.jsonl", os.path.join(lab.folder, log))
    done = cli(lab, "--log", log, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (125, "") and words in done.stderr, done


@pytest.mark.parametrize("args,lines", [(["--log", "head.jsonl"], 2), (["--verbose"], 2), ([], 1), (["--log", "head.jsonl", "--quiet"], 0)],
                         ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_last_lines(lab, args, lines):
    """The log's path, and the head for who names the log or wants to know more: the head that verify takes."""
    result = lab.netgate(args, ["true"], log=None, mounts=lab.host.mounts(tmpfs={"/var/log": "16m"}))
    last = [line for line in result.err.splitlines() if line.startswith(("netgate: log: /", "netgate: head: "))]
    assert (result.rc, len(last)) == (0, lines), result
    if "--log" in args and lines:
        log, head = (line.split()[2] for line in last)
        assert cli(lab, "verify", log, "--head", head).returncode == 0
        assert cli(lab, "verify", log, "--head", "0" * 64).returncode == 1


@pytest.mark.parametrize("args,word", [
    ([], "command"), (["--allow", "ok.test"], "command"), (["--nonsense", "--", "true"], "--nonsense"),
    (["--allow"], "--allow"), (["--allow", "*", "--", "true"], "*"), (["--allow", "*.com", "--", "true"], "com"),
    (["--allow", "bad..name", "--", "true"], "bad..name"), (["--allow", "ok.test:99999", "--", "true"], "99999"),
    (["--allow", "10.0.0.0/8", "--", "true"], "10.0.0.0/8"), (["--allow", "http://ok.test/", "--", "true"], "ok.test"),
    (["--timeout", "soon", "--", "true"], "--timeout"), (["--resolver", "dns.test", "--", "true"], "--resolver"),
    (["--policy", "/nonexistent.yaml", "--", "true"], "/nonexistent.yaml"), (["--fs", "open", "--", "true"], "--fs"),
    (["--job", "a/b", "--", "true"], "--job"), (["--user", "nobody-of-that-name", "--", "true"], "nobody-of-that-name"),
    (["--workspace", "/nonexistent", "--", "true"], "/nonexistent"), (["--quiet", "--verbose", "--", "true"], "--quiet"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_usage_errors(lab, args, word):
    """125, nothing on stdout, and one line that names what was wrong."""
    result = lab.netgate(args[:-2] if args[-1:] == ["true"] else args, ["echo", "ran"] if args[-1:] == ["true"] else None, log=None,
                         env={"XDG_STATE_HOME": lab.folder}, mounts=lab.host.mounts(tmpfs={"/var/log": "16m"}))
    assert (result.rc, result.out) == (125, ""), result
    assert result.err.startswith("netgate: ") and word in result.err, result


WARNED = ["--allow", "localhost:5432", "--allow", "ok.test", "--allow", "ok.test:443"]


def test_warnings_before_a_run(lab):
    """As netgate check has them, before the command; not with --quiet, nor for policies that the caller can't change."""
    result = lab.netgate(WARNED, ["sh", "-c", "echo started >&2"])
    first, second, third = result.err.splitlines()[:3]
    assert first.startswith("netgate: warning: --allow localhost:5432: ") and "the sandbox itself" in first, result
    assert (second, third) == ("netgate: warning: --allow ok.test:443: never needed: --allow ok.test covers it", "started"), result
    assert "warning" not in lab.netgate(["--quiet", *WARNED], ["true"]).err
    on_purpose = "version: 1\nallow: [ok.test, '*!:99', '10.2.0.5:5432', {host: db.test, addresses: [10.2.0.0/16]}]\n"
    path = policy_file(lab, on_purpose)
    assert "warning" not in lab.netgate(["--policy", path], ["true"]).err
    assert cli(lab, "check", path).stderr.count("warning: ") == 3

    told = json.loads(lab.netgate(["--json", *WARNED], ["true"]).out)
    assert len(told["warnings"]) == 2 and told["warnings"][1] == second.partition("warning: ")[2], told
    assert "warnings" not in json.loads(lab.netgate(["--json", "--allow", "ok.test"], ["true"]).out)

    os.makedirs(f"{lab.folder}/warned")
    os.chmod(f"{lab.folder}/warned", 0o755)
    policy_file(lab, "version: 1\nallow: ['localhost:5432']\n", "warned/default.yaml")
    assert "warning" not in lab.netgate(["--permits", f"{lab.folder}/warned"], ["true"]).err


def test_many_warnings(lab):
    path = policy_file(lab, "version: 1\nallow:\n" + "".join(f"  - n{i}.localhost:80\n" for i in range(13)))
    lines = [line for line in lab.netgate(["--policy", path], ["true"]).err.splitlines() if "warning: " in line]
    assert len(lines) == 11 and lines[-1] == "netgate: warning: and 3 more; netgate check POLICY has them all", lines


def test_policy_file(lab, who):
    workspace = lab.workspace(who)
    with open(f"{workspace}/policy.yaml", "w") as out:
        out.write(POLICY)
    result = lab.python(["--policy", "policy.yaml", "--allow", "other.test"], """
        import subprocess
        for name in ("ok.test", "a_b.wild.test", "x.wild.test", "other.test", "bad.test"):
            show(name=name, rc=subprocess.run(["curl", "-s", "-o", "/dev/null", f"https://{name}/hello"]).returncode)
    """, user=who, workspace=workspace)
    assert {seen["name"]: seen["rc"] for seen in result.shown} == {
        "ok.test": 0, "a_b.wild.test": 0, "x.wild.test": 6, "other.test": 0, "bad.test": 6}, result
    rules = {record["host"]: record["rule"] for record in result.of("decision", door="transparent", verdict="allow")}
    assert rules["ok.test"].endswith("policy.yaml:4") and rules["a_b.wild.test"].endswith("policy.yaml:5"), rules
    assert "--allow other.test" in rules["other.test"]
    assert result.of("decision", host="x.wild.test")[0]["rule"].endswith("policy.yaml:13")


def test_audit_mode(lab, who):
    """What would be denied is let through where that is safe, and is on record as what it would be."""
    result = lab.netgate(["--audit", "--allow", "ok.test"], ["sh", "-c", "curl -sS https://ok.test/hello; curl -sS https://bad.test/hello;"
                                                             "curl -s http://private.test/"], user=who)
    assert result.out.startswith("hello from ok.test\nhello from bad.test\n"), result
    decision = result.one("decision", door="transparent", host="bad.test")
    assert (decision["verdict"], decision["reason"], decision["would"]) == ("allow", "audit_mode", "not_allowed")
    assert result.of("decision", host="ok.test", door="transparent")[0]["reason"] == "rule"
    assert result.of("dial", host="private.test", outcome="private_address"), "audit mode does not open the guard"
    assert result.one("start")["mode"] == "audit"


@pytest.mark.parametrize("text,where", [
    ("version: 1\nallow:\n  - ok.test\n  - bad..name\n", ":4:"), ("version: 2\n", ":1:"), ("allow: []\n", "version"),
    ("version: 1\nalow:\n  - ok.test\n", ":2:"), ("version: 1\nallow:\n  - ok.test\nallow:\n  - x.test\n", ":4:"),
    ("version: 1\nallow: [\n", "policy.yaml:"), ("version: 1\nallow:\n  - '*'\n", ":3:"),
    ("version: 1\nallow:\n  - '*.co.uk'\n", ":3:"), ("version: 1\nallow:\n  - {host: ok.test, ports: [0]}\n", ":3:"),
    ("version: 1\nallow: &a [*a]\n", "policy.yaml"), ("version: 1\nmode: open\n", ":2:"),
], ids=range(11))
def test_policy_errors(lab, text, where):
    """file:line:col, for check and for a run, and the command does not start."""
    path = policy_file(lab, text)
    checked = cli(lab, "check", path)
    assert checked.returncode == 1 and checked.stdout == "" and where in checked.stderr and path in checked.stderr, checked
    result = lab.netgate(["--policy", path], ["echo", "ran"])
    assert (result.rc, result.out) == (125, "") and where in result.err, result


def test_check_prints_what_loads_again(lab):
    first = cli(lab, "check", policy_file(lab))
    assert first.returncode == 0, first
    second = cli(lab, "check", policy_file(lab, first.stdout, "again.yaml"))
    assert (second.returncode, second.stdout) == (0, first.stdout), second
    assert cli(lab, "check", "-", stdin=POLICY).stdout == first.stdout


def test_check_tells_invalid_from_unreadable(lab):
    """0 is valid, 1 invalid, 2 not read at all."""
    for args, status in (([policy_file(lab)], 0), ([policy_file(lab, "version: 2\n", "bad.yaml")], 1), (["/nonexistent.yaml"], 2),
                         ([lab.folder], 2), ([], 2), (["a", "b"], 2)):
        done = cli(lab, "check", *args)
        assert done.returncode == status and done.stderr.startswith(("netgate: ", "usage: ")) == (status > 0), (args, done)


def test_what_was_wrong_is_named_once(lab):
    result = lab.netgate(["--allow", "10.0.0.0/8"], ["true"])
    assert result.rc == 125 and result.err.count("--allow") == 1, result
    done = cli(lab, "check", policy_file(lab, "version: 1\nallow:\n  - host: db.corp:5432\n"))
    assert "host: takes no port; add ports: [5432]" in done.stderr, done


def test_localhost_is_the_sandbox(lab):
    path = policy_file(lab, "version: 1\nallow:\n  - localhost:80\n  - 127.0.0.1:8080\n  - host: localhost\n")
    words = "localhost and 127.0.0.0/8 are the sandbox itself"
    assert cli(lab, "check", path).stderr.count(words) == 3
    for what, status in (("http://localhost/", 0), ("127.0.0.1:8080", 0), ("127.0.0.1:99", 1), ("x.localhost:99", 1)):
        done = cli(lab, "explain", path, what)
        assert (done.returncode, done.stdout.count(words)) == (status, 1), done


def test_check_warns(lab):
    done = cli(lab, "check", policy_file(lab, "version: 1\nallow:\n  - '*.wild.test'\n  - a.wild.test\n  - dns.google\n"))
    assert done.returncode == 0 and "a.wild.test" in done.stderr and "dns.google" in done.stderr, done


@pytest.mark.parametrize("what,status,words", [
    ("https://ok.test/x", 0, ["allow", "policy.yaml:4"]), ("ok.test", 0, ["policy.yaml:4"]), ("ok.test:22", 1, ["port_not_allowed"]),
    ("http://deep.down.wild.test/", 0, ["policy.yaml:5"]), ("x.wild.test", 1, ["denied_by_rule", "policy.yaml:13"]),
    ("raw.test:7", 0, ["policy.yaml:6"]), ("bad.test", 1, ["not_allowed"]), ("203.0.114.9:8443", 0, ["policy.yaml:10"]),
    ("udp://ok.test:53", 1, ["never let through"]), ("ssh://git@ok.test/x", 1, ["ok.test:22", "port_not_allowed"]),
    ("203.0.113.9:8443", 1, []), ("wild.test", 1, ["not_allowed"]),
])
def test_explain(lab, what, status, words):
    done = cli(lab, "explain", policy_file(lab), what)
    assert done.returncode == status, done
    for word in words:
        assert word in done.stdout, done


def test_explain_says_what_then_happens(lab, who):
    """The same words as in the record of a real attempt."""
    path = policy_file(lab, "version: 1\nallow:\n  - ok.test\n")
    os.chmod(path, 0o644)
    for name in ("ok.test", "bad.test"):
        explained = cli(lab, "explain", path, f"https://{name}/")
        result = lab.netgate(["--policy", path], ["curl", "-s", "--resolve", f"{name}:443:{v4('web')}", f"https://{name}/"], user=who)
        decision = result.one("decision", door="transparent")
        assert (explained.returncode == 0) == (decision["verdict"] == "allow"), (explained, result)
        assert decision["reason"] in explained.stdout or decision.get("rule", "-") in explained.stdout, (explained, result)


def test_million_names(lab):
    """A large policy loads; how long it takes is the benchmark's matter."""
    path = policy_file(lab, "version: 1\nallow:\n" + "".join(f"  - h{number}.example.org\n" for number in range(1_000_000)), "big.yaml")
    done = cli(lab, "explain", path, "h999999.example.org")
    assert done.returncode == 0 and "big.yaml:1000002" in done.stdout, done.stdout[-300:]
    os.unlink(path)
