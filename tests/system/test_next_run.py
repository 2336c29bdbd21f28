# SPDX-License-Identifier: Apache-2.0
"""What a command leaves in its workspace must not bend the next run, nor lend rights to others."""

import os
import signal
import subprocess

import pytest


def shell(lab, user, workspace, script, *args, env=None):
    return lab.netgate([*args], ["sh", "-c", script], user=user, workspace=workspace, env=env, log=None)


@pytest.fixture
def user(who):
    return who


def test_path_entry_becomes_a_link(lab):
    """A tools directory in the workspace, turned into a link to the keys by one run, shows nothing to the next."""
    user = lab.user
    workspace = os.path.join(user.home, "project")
    keys = os.path.join(user.home, ".ssh")
    os.makedirs(os.path.join(workspace, "tools", "bin"))
    os.makedirs(keys, exist_ok=True)
    with open(os.path.join(keys, "id"), "w", encoding="utf-8") as file:
        file.write("SECRET\n")
    subprocess.run(["chown", "-R", f"{user.uid}:{user.gid}", workspace, keys], check=True)
    env = {"PATH": f"{workspace}/tools/bin:{os.environ['PATH']}"}
    first = shell(lab, user, workspace, "touch tools/bin/new && mv tools old && mkdir tools && ln -s ../../.ssh tools/bin", env=env)
    assert first.rc == 0, first
    second = shell(lab, user, workspace, f"cat {keys}/id", env=env)
    assert second.rc == 1 and "SECRET" not in second.out, second


def test_log_in_a_folder_of_the_workspace(lab, user):
    """It could be renamed, and with it the mount that hides the log."""
    workspace = lab.workspace(user)
    os.makedirs(os.path.join(workspace, "logs"))
    if user:
        os.chown(os.path.join(workspace, "logs"), user.uid, user.gid)
    result = shell(lab, user, workspace, "echo started", "--log", "logs/b.jsonl")
    assert result.rc == 125 and "started" not in result.out, result
    assert "logs/b.jsonl must stay out of the command's hands" in result.err, result


def test_log_in_the_workspace_stays(lab, user):
    workspace = lab.workspace(user)
    result = shell(lab, user, workspace, "rm -f b.jsonl; mv b.jsonl c.jsonl; echo forged > b.jsonl; ls", "--log", "b.jsonl")
    assert "b.jsonl" in result.out.split() and "c.jsonl" not in result.out.split(), result
    with open(os.path.join(workspace, "b.jsonl"), encoding="utf-8") as log:
        lines = log.read()
    assert "forged" not in [line.strip() for line in lines.splitlines()], result
    assert '"type":"end"' in lines, result


def test_no_set_user_id(lab, user):
    workspace = lab.workspace(user)
    result = lab.netgate([], ["/usr/bin/python3", "-c", """
import os
os.close(os.open("old", os.O_CREAT | os.O_WRONLY, 0o755))
tries = {
    "open": lambda: os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755),
    "unnamed": lambda: os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755),
    "chmod": lambda: os.chmod("old", 0o4755),
    "fchmod": lambda: os.fchmod(os.open("old", os.O_RDONLY), 0o6755),
    "mknod": lambda: os.mknod("node", 0o104755),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name, "worked")
    except PermissionError:
        print(name, "refused")
os.chmod("old", 0o700)
"""], user=user, workspace=workspace)
    assert result.out.split() == ["open", "refused", "unnamed", "refused", "chmod", "refused", "fchmod", "refused", "mknod",
                                  "refused"], result


def test_workspace_out_of_the_users_reach(lab):
    """Under sudo, root's eyes must not find a workspace for a user who has no way to it."""
    user = lab.user
    workspace = lab.workspace(user)
    closed = os.path.join(os.path.dirname(workspace), "closed")
    os.makedirs(os.path.join(closed, "sub"), exist_ok=True)
    os.chmod(closed, 0o700)
    os.chown(closed, 0, 0)
    link = os.path.join(workspace, "ws")
    os.symlink(os.path.join(closed, "sub"), link)
    env = {"SUDO_UID": str(user.uid), "SUDO_GID": str(user.gid), "SUDO_USER": user.name}
    result = shell(lab, None, workspace, "echo started", "--workspace", link, env=env)
    assert result.rc == 125 and "started" not in result.out, result
    assert "has no way to it" in result.err, result


def test_started_with_sigchld_ignored(lab, user):
    """As some supervisors start their children: it must still end."""
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run = lab.start([], ["sh", "-c", "exit 7"], user=user)
    finally:
        signal.signal(signal.SIGCHLD, old)
    assert run.finish().rc == 7
