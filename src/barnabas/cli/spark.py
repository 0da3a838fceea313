"""Commands that need Spark, which comes as an extra."""

from importlib.util import find_spec

from barnabas.cli.failures import CommandError

#: Packages of the extra that such commands import.
_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas", "deltalake")


def check_spark_installed() -> None:
    """See to it that Spark can be imported.

    :raises CommandError: When the extra is missing, in whole or in part.
    """
    missing = [name for name in _PACKAGES if not _is_there(name)]
    if missing:
        message = f"Spark is not installed: {', '.join(missing)} cannot be imported"
        raise CommandError(message, hint="in a checkout of Barnabas: pip install '.[spark]'")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # of a module that was put in place by hand, without a spec
        return False
