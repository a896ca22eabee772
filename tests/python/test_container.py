"""The recipe of the container is linted, and the root that it copies has all that a program is linked with."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = ROOT / "config" / "container"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def ran(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_recipe_has_no_warning():
    linted = ran(Path(sys.executable).parent / "hadolint", CONTAINER / "Containerfile")
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.skipif(not CERTIFICATES.exists(), reason="there are no root certificates here")
def test_root_starts_a_program_with_its_own_libraries(tmp_path):
    # Any program that is linked as this one is.
    program = os.path.realpath(sys.executable)
    made = ran(CONTAINER / "rootfs", program, tmp_path / "made")
    assert made.returncode == 0, made.stderr
    root = tmp_path / "made" / "root"
    inside = [root / path.lstrip("/") for path in re.findall(r"/\S+", ran("ldd", program).stdout)]
    assert inside and all(path.is_file() for path in inside)
    loader = next(path for path in inside if path.name.startswith("ld-"))
    own = ":".join({str(path.parent) for path in inside})
    started = ran(loader, "--inhibit-cache", "--library-path", own, root / "usr/local/bin/proscenium", "--version")
    assert started.stdout.startswith("Python 3"), started.stderr
    assert (root / "etc/proscenium/proscenium.toml").read_text() == (ROOT / "config/production.toml").read_text()
    assert "10001" in (root / "etc/passwd").read_text()
    data = tmp_path / "made" / "data"
    assert data.stat().st_mode & 0o777 == 0o700 and not list(data.iterdir())
    # It overwrites nothing.
    assert ran(CONTAINER / "rootfs", program, tmp_path / "made").returncode == 1
