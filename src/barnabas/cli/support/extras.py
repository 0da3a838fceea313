"""Checks of optional packages, for commands that need them."""

from importlib.util import find_spec

from barnabas.cli.support.failures import CommandError

#: Packages of the extra `arrow`.
_ARROW = ("pyarrow", "numpy", "numba")
#: Packages of the extra `spark` that commands import.
_SPARK = ("pyspark", "pyarrow", "numpy", "pandas", "deltalake")
#: Packages of the extra `console`.
_CONSOLE = ("starlette", "uvicorn", "jinja2", "python_multipart")

#: Packages of the extra `registry`.
_REGISTRY = ("starlette", "uvicorn", "jsonschema", "referencing", "google.protobuf")


#: Packages of the extra `tables`.
_TABLES = (*_ARROW, "deltalake", "obstore", "fastavro", "google.protobuf", "jsonschema", "referencing")


def check_spark_installed() -> None:
    """Check that Spark can be imported.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    _check("Spark", "spark", _SPARK)


def check_arrow_installed() -> None:
    """Check that Arrow can be imported, and what decodes records for it.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    _check("Arrow", "arrow", _ARROW)


def check_tables_installed() -> None:
    """Check that tables can be kept.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    _check("The library for tables", "tables", _TABLES)


def check_console_installed() -> None:
    """Check that the console can be imported.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    _check("The console", "console", _CONSOLE)


def check_registry_installed() -> None:
    """Check that the schema registry can be imported.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    _check("The schema registry", "registry", _REGISTRY)


def is_console_installed() -> bool:
    return not _missing(_CONSOLE)


def _check(name: str, extra: str, packages: tuple[str, ...]) -> None:
    missing = _missing(packages)
    if missing:
        message = f"{name} is not installed: {', '.join(missing)} cannot be imported"
        raise CommandError(message, hint=f"in a checkout of Barnabas: pip install '.[{extra}]'")


def _missing(packages: tuple[str, ...]) -> list[str]:
    return [name for name in packages if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False
    except ValueError:  # a module in sys.modules that has no spec
        return False
