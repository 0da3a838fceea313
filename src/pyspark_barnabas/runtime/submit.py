"""Command of `barnabas spark-submit`: Spark's spark-submit, with Java found and the Barnabas packages shipped."""

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pyspark_barnabas.delegation import VARIABLE as DELEGATION_TOKENS
from pyspark_barnabas.runtime.cache import cache_directory, create_once
from pyspark_barnabas.runtime.java import java_home

PACKAGES = ("barnabas", "pyspark_barnabas", "pyspark_barnabas_batches", "pyspark_barnabas_delta")
PY_FILES = "--py-files"
PYTHON = "spark.pyspark.python"
DRIVER_PYTHON = "spark.pyspark.driver.python"

#: Options of spark-submit without a value.
_FLAGS = frozenset({"--help", "-h", "--verbose", "-v", "--version", "--usage-error", "--supervise"})
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Submission:
    """A command to run, with its environment."""

    command: list[str]
    environment: dict[str, str]


def submission(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    ship: bool = True,
    delegation_tokens: bool = False,
) -> Submission:
    """Build the command of Spark's spark-submit with `arguments` in its own syntax.

    Unless another interpreter is named, the driver on this machine runs this one; so do workers if the master is
    "local". For other masters the Barnabas packages are shipped to the workers if `ship` is true; their dependencies
    must be installed there.

    :raises JavaNotFound: No Java was found.
    :raises OSError: The archive of the packages could not be written.
    """
    variables = dict(environment)
    variables["JAVA_HOME"] = str(java_home(environment))
    variables.setdefault("SPARK_HOME", str(spark_home()))
    if delegation_tokens:
        variables[DELEGATION_TOKENS] = "true"
    options, application = split(arguments)
    is_local = value_of(options, "--master", environment.get("MASTER", "")).startswith("local")
    if is_local:
        variables.setdefault("PYSPARK_PYTHON", sys.executable)
    if value_of(options, "--deploy-mode", "client") == "client":
        options = with_interpreters(options, variables)
    if ship and not is_local:
        archive = str(packed(environment))
        options = with_py_file(options, archive)
        # the driver's JVM finds data sources with a separate Python process, which gets only this variable
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [archive, environment.get("PYTHONPATH")]))
    program = str(Path(variables["SPARK_HOME"]) / "bin" / "spark-submit")
    return Submission([program, *options, *application], variables)


def spark_home() -> Path:
    """Return the directory of the installed PySpark, which contains Spark."""
    return directory_of("pyspark")


def directory_of(package: str) -> Path:
    """Return the directory of an installed package."""
    spec = find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    return Path(spec.origin).parent


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split into the options of spark-submit, and the application with its own arguments."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        takes_value = arguments[index] not in _FLAGS and "=" not in arguments[index]
        index += 2 if takes_value else 1
    return list(arguments[:index]), list(arguments[index:])


def value_of(options: Sequence[str], name: str, default: str) -> str:
    """Return the value of an option of spark-submit; the last one if there are several, like Spark."""
    values = values_of(options, name)
    return values[-1] if values else default


def values_of(options: Sequence[str], *names: str) -> list[str]:
    """Return all values of an option with these names, in their order."""
    values = [entry for name in names for entry in _values(options, name)]
    return [value for _, value in sorted(values, key=lambda entry: entry[0].start)]


def with_py_file(options: Sequence[str], path: str) -> list[str]:
    """Return the options with one more file in --py-files."""
    named = _values(options, PY_FILES)
    remaining = [
        option for index, option in enumerate(options) if not any(index in indexes for indexes, _ in named)
    ]
    return [*remaining, PY_FILES, ",".join([*(value for _, value in named[-1:]), path])]


def with_interpreters(options: Sequence[str], variables: MutableMapping[str, str]) -> list[str]:
    """Return the options with the interpreter of a driver on this machine; set the workers' one in `variables`.

    Spark plans data sources here and reads them in workers with the same interpreter, which it takes from
    PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON, or else the `python3` of each machine. So the driver's own interpreter
    becomes a setting, and if none is named for workers, this interpreter becomes the `python3` of this machine.
    """
    driver = variables.pop("PYSPARK_DRIVER_PYTHON", None)
    settings = dict(setting.partition("=")[::2] for setting in values_of(options, "--conf", "-c"))
    if PYTHON in settings:
        variables["PYSPARK_PYTHON"] = settings[PYTHON]
    if "PYSPARK_PYTHON" not in variables:
        driver = driver or sys.executable
        directories = [str(Path(sys.executable).parent), *filter(None, [variables.get("PATH")])]
        variables["PATH"] = os.pathsep.join(directories)
    if driver is None or DRIVER_PYTHON in settings:
        return list(options)
    return [*options, "--conf", f"{DRIVER_PYTHON}={driver}"]


def _values(options: Sequence[str], name: str) -> list[tuple[range, str]]:
    """Return the indexes and the value of each `NAME VALUE` or `NAME=VALUE`."""
    values = []
    for index, option in enumerate(options):
        if option == name and index + 1 < len(options):
            values.append((range(index, index + 2), options[index + 1]))
        elif option.startswith(f"{name}="):
            values.append((range(index, index + 1), option.partition("=")[2]))
    return values


def packed(environment: Mapping[str, str]) -> Path:
    """Return the packages as one zip file that Python can import from, created once per state of the code.

    :raises OSError: It cannot be written.
    """
    sources = sorted(_sources())
    digest = hashlib.sha256()
    for name, path in sources:
        state = path.stat()
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    path = cache_directory(environment) / f"barnabas-{digest.hexdigest()[:12]}.zip"
    return create_once(path, partial(_write_zip, sources=sources))


def _sources() -> Iterator[tuple[str, Path]]:
    """Yield the files of the packages, each with its name in the archive."""
    for package in PACKAGES:
        root = directory_of(package)
        for path in root.rglob("*"):
            # Python cannot import extension modules from an archive: the module next to it runs as plain Python
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".c", ".so"):
                yield str(Path(package) / path.relative_to(root)), path


def _write_zip(path: Path, sources: Sequence[tuple[str, Path]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sources:
            archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
