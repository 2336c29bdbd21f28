# SPDX-License-Identifier: Apache-2.0
"""A package index for pip and a repository for apt, each with one small package, as {path: bytes}."""

import base64
import gzip
import hashlib
import io
import os
import subprocess
import tempfile
import zipfile

WHEEL = "labpackage-1.0-py3-none-any.whl"


def wheel():
    files = {"labpackage/__init__.py": b"ANSWER = 42\n",
             "labpackage-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: labpackage\nVersion: 1.0\n",
             "labpackage-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    record = "labpackage-1.0.dist-info/RECORD"
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def pip_files():
    data = wheel()
    link = f'<a href="/packages/{WHEEL}#sha256={hashlib.sha256(data).hexdigest()}">{WHEEL}</a>'
    page = f"<!DOCTYPE html><html><body>{link}</body></html>\n".encode()
    return {"/simple/labpackage/": page, f"/packages/{WHEEL}": data}


def apt_files(count=3):
    """A flat repository of `count` packages at /apt/, so that one run of apt asks for several files."""
    files, packages = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            root = os.path.join(folder, f"root{number}")
            os.makedirs(os.path.join(root, "DEBIAN"))
            with open(os.path.join(root, "DEBIAN/control"), "w") as control:
                control.write(f"Package: lab-package-{number}\nVersion: 1.0\nArchitecture: all\n"
                              "Maintainer: Lab <lab@ok.test>\nDescription: nothing\n")
            name = f"lab-package-{number}_1.0_all.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, os.path.join(folder, name)], check=True,
                           capture_output=True, timeout=60)
            with open(os.path.join(folder, name), "rb") as deb:
                data = deb.read()
            files[f"/apt/{name}"] = data
            packages.append(f"Package: lab-package-{number}\nVersion: 1.0\nArchitecture: all\nFilename: ./{name}\n"
                            f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
                            "Maintainer: Lab <lab@ok.test>\nDescription: nothing\n")
    index = "\n".join(packages).encode()
    compressed = gzip.compress(index)
    sums = "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
                   for name, data in (("Packages", index), ("Packages.gz", compressed)))
    files |= {"/apt/Packages": index, "/apt/Packages.gz": compressed,
              "/apt/Release": f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{sums}".encode()}
    return files
