"""Jars, as Maven brings them."""

import hashlib
import shutil
import subprocess
from pathlib import Path


def jars(pom: Path, directory: Path) -> Path:
    """Bring the jars that a pom names into a directory (once per version of the pom); gives it.

    Raises:
        subprocess.CalledProcessError: Maven failed, and has said why.
    """
    stamp = directory / ".complete"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(directory, ignore_errors=True)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        subprocess.run(["mvn", "-q", "-B", "-f", pom, *copy], check=True, stdin=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return directory
