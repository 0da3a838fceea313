"""Check of the optional Spark packages, for commands that need them."""

from importlib.util import find_spec

from barnabas.cli.support.failures import CommandError

#: Packages of the extra `spark` that these commands import.
_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas", "deltalake")


def check_spark_installed() -> None:
    """Check that Spark can be imported.

    :raises CommandError: If the extra is missing, in whole or in part.
    """
    missing = [name for name in _PACKAGES if not _is_installed(name)]
    if missing:
        message = f"Spark is not installed: {', '.join(missing)} cannot be imported"
        raise CommandError(message, hint="in a checkout of Barnabas: pip install '.[spark]'")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # a module in sys.modules that has no spec
        return False
