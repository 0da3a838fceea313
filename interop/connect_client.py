"""An interpreter with Spark's client for Spark Connect, and nothing else of Spark: no JVM, no Barnabas."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-connect-client"
REQUIREMENTS = HERE / "connect-client.txt"
BUILD_REQUIREMENTS = HERE.parent / "requirements" / "build.txt"


def python() -> Path:
    """Return the interpreter of the environment, which is created once.

    Raises:
        subprocess.CalledProcessError: pip failed, and has printed why.
    """
    stamp = ENVIRONMENT / ".complete"
    interpreter = ENVIRONMENT / "bin" / "python"
    wanted = REQUIREMENTS.read_text()
    if not (stamp.exists() and stamp.read_text() == wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        install = [str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        for requirements in (BUILD_REQUIREMENTS, REQUIREMENTS):  # the client is only published as source
            locked = ["--no-build-isolation", "--require-hashes", "-r", str(requirements)]
            subprocess.run([*install, *locked], check=True)
        stamp.write_text(wanted)
    return interpreter
