"""Fetching jars with Maven."""

import hashlib
import shutil
import subprocess
from pathlib import Path


def jars(pom: Path, directory: Path) -> Path:
    """Fetch the jars that a pom names into a directory (once per version of the pom); return it.

    Raises:
        subprocess.CalledProcessError: Maven failed, and has printed why.
    """
    stamp = directory / ".complete"
    pom_digest = hashlib.sha256(pom.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == pom_digest):
        shutil.rmtree(directory, ignore_errors=True)
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        subprocess.run(["mvn", "-q", "-B", "-f", pom, *copy], check=True, stdin=subprocess.DEVNULL)
        stamp.write_text(pom_digest)
    return directory
