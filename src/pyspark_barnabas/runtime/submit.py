"""What `barnabas spark-submit` runs: Spark's own spark-submit, with Java found and these packages sent along."""

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pyspark_barnabas.runtime.cache import cache_directory, made_once
from pyspark_barnabas.runtime.java import UNCHECKED_ARROW, java_home

PACKAGES = ("barnabas", "pyspark_barnabas", "pyspark_barnabas_batches")
PY_FILES = "--py-files"
PYTHON = "spark.pyspark.python"
DRIVER_PYTHON = "spark.pyspark.driver.python"

#: Options of spark-submit that are not followed by a value.
_FLAGS = frozenset({"--help", "-h", "--verbose", "-v", "--version", "--usage-error", "--supervise"})
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Submission:
    """A program to run, with its arguments and its environment."""

    command: list[str]
    environment: dict[str, str]


def submission(arguments: Sequence[str], environment: Mapping[str, str], *, ship: bool = True) -> Submission:
    """Spark's spark-submit with `arguments`, which are as Spark has them.

    Where no other interpreter is named, the driver on this machine runs this one; so do workers when the master is
    "local". Any other master's workers are sent the packages of Barnabas, if `ship` is not false; what these need is to
    be installed there.

    :raises JavaNotFound: There is no Java to run it on.
    :raises OSError: The packages were to be sent and could not be written to a file.
    """
    variables = dict(environment)
    variables["JAVA_HOME"] = str(java_home(environment))
    variables.setdefault(UNCHECKED_ARROW, "true")
    variables.setdefault("SPARK_HOME", str(spark_home()))
    options, application = split(arguments)
    is_local = value_of(options, "--master", environment.get("MASTER", "")).startswith("local")
    if is_local:
        variables.setdefault("PYSPARK_PYTHON", sys.executable)
    if value_of(options, "--deploy-mode", "client") == "client":
        options = with_interpreters(options, variables)
    if ship and not is_local:
        archive = str(packed(environment))
        options = with_py_file(options, archive)
        # the driver's JVM looks for data sources by a Python of its own, which is told of nothing else
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [archive, environment.get("PYTHONPATH")]))
    program = str(Path(variables["SPARK_HOME"]) / "bin" / "spark-submit")
    return Submission([program, *options, *application], variables)


def spark_home() -> Path:
    """Where the installed PySpark keeps Spark."""
    return directory_of("pyspark")


def directory_of(package: str) -> Path:
    """Where an installed package is."""
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return Path(spec.origin).parent


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of spark-submit, and the application with its own arguments."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        takes_value = arguments[at] not in _FLAGS and "=" not in arguments[at]
        at += 2 if takes_value else 1
    return list(arguments[:at]), list(arguments[at:])


def value_of(options: Sequence[str], name: str, default: str) -> str:
    """The value of an option of spark-submit; of several, as Spark has it, the last."""
    values = values_of(options, name)
    return values[-1] if values else default


def values_of(options: Sequence[str], *names: str) -> list[str]:
    """All values of an option that goes by these names, in their order."""
    found = [each for name in names for each in _values(options, name)]
    return [value for _, value in sorted(found, key=lambda each: each[0].start)]


def with_py_file(options: Sequence[str], path: str) -> list[str]:
    """The options with one more file for Python workers, next to those that are named already."""
    named = _values(options, PY_FILES)
    kept = [option for at, option in enumerate(options) if not any(at in places for places, _ in named)]
    return [*kept, PY_FILES, ",".join([*(value for _, value in named[-1:]), path])]


def with_interpreters(options: Sequence[str], variables: MutableMapping[str, str]) -> list[str]:
    """The options with the interpreter of a driver on this machine; sets the one of workers in `variables`.

    Spark lets data sources be planned here and read by workers on one and the same interpreter, which it takes from
    PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON, or else is the `python3` of each machine. So the driver's own becomes a
    setting, and where none is named for workers this one is the `python3` of this machine.
    """
    driver = variables.pop("PYSPARK_DRIVER_PYTHON", None)
    settings = dict(each.partition("=")[::2] for each in values_of(options, "--conf", "-c"))
    if PYTHON in settings:
        variables["PYSPARK_PYTHON"] = settings[PYTHON]
    if "PYSPARK_PYTHON" not in variables:
        driver = driver or sys.executable
        places = [str(Path(sys.executable).parent), *filter(None, [variables.get("PATH")])]
        variables["PATH"] = os.pathsep.join(places)
    if driver is None or DRIVER_PYTHON in settings:
        return list(options)
    return [*options, "--conf", f"{DRIVER_PYTHON}={driver}"]


def _values(options: Sequence[str], name: str) -> list[tuple[range, str]]:
    """Where an option stands, as `NAME VALUE` or `NAME=VALUE`, and its value."""
    found = []
    for at, option in enumerate(options):
        if option == name and at + 1 < len(options):
            found.append((range(at, at + 2), options[at + 1]))
        elif option.startswith(f"{name}="):
            found.append((range(at, at + 1), option.partition("=")[2]))
    return found


def packed(environment: Mapping[str, str]) -> Path:
    """Both packages as one file that Python can import from; made once for each state of the code.

    :raises OSError: It cannot be written.
    """
    sources = sorted(_sources())
    digest = hashlib.sha256()
    for name, path in sources:
        state = path.stat()
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    place = cache_directory(environment) / f"barnabas-{digest.hexdigest()[:12]}.zip"
    return made_once(place, partial(_write_zip, sources=sources))


def _sources() -> Iterator[tuple[str, Path]]:
    """The files of both packages, each by its name in the archive."""
    for package in PACKAGES:
        root = directory_of(package)
        for path in root.rglob("*"):
            # nothing imports machine code from an archive: there the module next to it runs as plain Python
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".c", ".so"):
                yield str(Path(package) / path.relative_to(root)), path


def _write_zip(place: Path, sources: Sequence[tuple[str, Path]]) -> None:
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sources:
            archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
