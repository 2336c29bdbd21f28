# SPDX-License-Identifier: Apache-2.0
"""Policies to choose from: what is chosen never goes beyond the administrator's files."""

import os

import pytest

PERMIT = "version: 1\nallow:\n  - ok.test\n  - \"*.wild.test:443\"\ndeny:\n  - x.wild.test\n"
NAMED = "version: 1\nallow:\n  - raw.test:7\n  - other.test\n"


@pytest.fixture
def permits(lab):
    """Makes the directory; returns its path."""
    path = os.path.join(lab.folder, "policies")
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o755)

    def write(**files):
        for old in os.listdir(path):
            os.unlink(os.path.join(path, old))
        for name, text in files.items():
            with open(os.path.join(path, name + ".yaml"), "w") as out:
                out.write(text)
            os.chmod(out.name, 0o644)
        return path
    return write


FETCH = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://ok.test/"]


def test_narrowed(lab, who, permits):
    path = permits(permit=PERMIT)
    result = lab.netgate(["--permits", path, "--narrow", "ok.test:80"], FETCH, user=who)
    assert result.out == "200", result
    decision = [r for r in result.of("decision") if r.get("proto") == "http"]
    assert decision[0]["rule"] == f"{path}/permit.yaml:3", result
    assert result.one("start")["rules"] == 2  # the one entry, and the denial


def test_chosen_by_name_and_default(lab, permits):
    path = permits(permit=PERMIT, named=NAMED, default="version: 1\nallow: [ok.test]\n")
    assert lab.netgate(["--permits", path], FETCH).out == "200"
    denied = lab.netgate(["--permits", path, "--choose", "named"], FETCH)
    assert denied.out != "200" and denied.of("decision", reason="not_allowed"), denied


def test_no_default_allows_nothing(lab, permits):
    result = lab.netgate(["--permits", permits(permit=PERMIT)], FETCH)
    assert result.out != "200" and result.one("start")["rules"] == 0, result


def test_no_flag_is_suggested(lab, permits):
    """Not to whom can't give it, nor to what runs in the sandbox; where flags do allow, a person is told."""
    path = permits(default=PERMIT + "  - inner.test\n")
    command = ["sh", "-c", "curl -sS http://evil.test/; curl -sS -H 'Host: evil.test' http://ok.test/"]
    for args in (["--permits", path], ["--permits", path, "--choose", "default", "--deny", "other.test"]):
        result = lab.netgate(args, command)
        assert "netgate: evil.test port 80: not_allowed; conn " in result.out, result
        assert "not_allowed" in result.err and "allow:" not in result.err and "--allow" not in result.out + result.err, result
    flags = lab.netgate(["--allow", "ok.test"], command)
    assert "--allow" not in flags.out and "to allow: --allow evil.test" in flags.err, flags


@pytest.mark.parametrize("options, says", [
    (["--narrow", "evil.test"], "permit.yaml: \"evil.test\" is not permitted"),
    (["--narrow", "ok.test", "--narrow", "*.wild.test"], "port 80 is not permitted"),
    (["--narrow", "ok.test:443/tcp"], "port 443/tcp is not permitted"),
    (["--narrow", "*!"], "is not permitted"),
    (["--choose", "named", "--narrow", "ok.test"], "named.yaml: \"ok.test\" is not permitted"),
    (["--choose", "missing"], "there is no policy missing"),
    (["--choose", "missing", "--narrow", "ok.test"], "missing.yaml is missing"),
    (["--choose", "../policies/named"], "--choose: \"../policies/named\": not a name"),
    (["--choose", ".hidden"], "--choose: \".hidden\": not a name"),
    (["--choose", "default", "--choose", "named"], "--choose: \"named\": chosen already"),
    (["--permits", "/elsewhere"], "--permits: \"/elsewhere\": chosen already"),
    (["--allow", "evil.test"], "--permits"),
    (["--policy", "/dev/null"], "--permits"),
    (["--audit"], "--permits"),
], ids=lambda value: value if isinstance(value, str) else " ".join(value))
def test_refused(lab, permits, options, says):
    result = lab.netgate(["--permits", permits(permit=PERMIT, named=NAMED), *options], ["true"])
    assert result.rc == 125 and says in result.err, result
    assert not result.of("start"), result


def test_nothing_permitted_without_the_file(lab, permits):
    result = lab.netgate(["--permits", permits(named=NAMED), "--narrow", "ok.test"], ["true"])
    assert result.rc == 125 and "permits nothing" in result.err, result


@pytest.mark.parametrize("what", ["file", "directory"])
@pytest.mark.parametrize("wrong", ["mode", "owner"])
def test_files_that_others_may_write(lab, permits, what, wrong):
    path = permits(permit=PERMIT)
    target = path if what == "directory" else os.path.join(path, "permit.yaml")
    before = os.stat(target)
    if wrong == "mode":
        os.chmod(target, 0o666 if what == "file" else 0o777)
    else:
        os.chown(target, 12345, 12345)
    try:
        result = lab.netgate(["--permits", path, "--narrow", "ok.test"], ["true"])
    finally:
        os.chown(target, before.st_uid, before.st_gid)
        os.chmod(target, before.st_mode & 0o7777)
    assert result.rc == 125, result
    assert ("written by others" if wrong == "mode" else "belongs to uid 12345") in result.err, result


@pytest.mark.parametrize("option", [["--choose", "named"], ["--narrow", "ok.test"]], ids=" ".join)
def test_choice_without_a_directory(lab, option):
    result = lab.netgate(option, ["true"])
    assert result.rc == 125 and "--permits" in result.err, result
