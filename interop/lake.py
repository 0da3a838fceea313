"""A Spark that reads tables of Delta and Iceberg: the newest version that both support, apart from the tests' own."""

import shutil
import subprocess
import sys
from pathlib import Path

from interop import maven

HERE = Path(__file__).resolve().parent
POM = HERE / "lake" / "pom.xml"
REQUIREMENTS = HERE / "lake" / "requirements.txt"
JARS = HERE / ".cache" / "lake-jars"
PACKAGES = HERE / ".cache" / "lake-spark"


def fetch() -> None:
    """Fetch the jars with Maven, and Spark with pip."""
    maven.jars(POM, JARS)
    stamp = PACKAGES / ".complete"
    wanted = REQUIREMENTS.read_text()
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(PACKAGES, ignore_errors=True)
        options = [
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-build-isolation",
            "--require-hashes",
        ]
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            *options,
            "--target",
            str(PACKAGES),
            "-r",
            str(REQUIREMENTS),
        ]
        subprocess.run(command, check=True)
        stamp.write_text(wanted)


def jars() -> str:
    """Return the jars as `spark.jars` takes them."""
    return ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
