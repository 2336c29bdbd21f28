# SPDX-License-Identifier: Apache-2.0
"""The lab's certificate authority and one server certificate for all of its names, made once and cached."""

import fcntl
import os
import subprocess

# Names under which the lab's TLS servers answer. A certificate's wildcard covers one label.
NAMES = ["ok.test", "bad.test", "h2.test", "other.test", "git.test", "pip.test", "a_b.wild.test", "example.com"]
WILDCARDS = ["*.ok.test", "*.example.com", "*.example.org", "*.wild.test"]
DAYS = 365


def _openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=60)


def _make(folder):
    """ECDSA keys: quick to make and small on the wire."""
    path = lambda name: os.path.join(folder, name)
    names = ",".join(f"DNS:{name}" for name in NAMES + WILDCARDS)
    with open(path("leaf.ext"), "w") as out:
        out.write(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(DAYS),
             "-subj", "/CN=netgate lab CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
             "-keyout", path("ca.key"), "-out", path("ca.pem"))
    _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=netgate lab",
             "-keyout", path("leaf.key"), "-out", path("leaf.csr"))
    _openssl("x509", "-req", "-in", path("leaf.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"),
             "-CAcreateserial", "-days", str(DAYS), "-extfile", path("leaf.ext"), "-out", path("leaf.pem"))


def _fresh(folder):
    """True when the cached files are there, cover today's list of names and stay valid for a week."""
    leaf = os.path.join(folder, "leaf.pem")
    if not all(os.path.exists(os.path.join(folder, name)) for name in ("ca.pem", "leaf.key", "leaf.pem")):
        return False
    shown = subprocess.run(["openssl", "x509", "-in", leaf, "-noout", "-checkend", str(7 * 86400), "-ext",
                            "subjectAltName"], capture_output=True, text=True, timeout=60)
    return shown.returncode == 0 and all(f"DNS:{name}" in shown.stdout for name in NAMES + WILDCARDS)


class CA:
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _fresh(folder):
                _make(folder)
        self.ca = os.path.join(folder, "ca.pem")
        self.cert = os.path.join(folder, "leaf.pem")
        self.key = os.path.join(folder, "leaf.key")
