"""Create a Spark session without setup: Java is found, and Python workers run this interpreter."""

import os
import socket
import sys
from collections.abc import Mapping, MutableMapping

from pyspark.sql import SparkSession

from pyspark_barnabas.runtime.java import UNCHECKED_ARROW, java_home


def spark_session(
    app_name: str = "barnabas", *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session; find a Java if this process has to start a JVM.

    Python workers on this machine run this interpreter unless PYSPARK_PYTHON names another; workers of a local master
    communicate over Unix domain sockets.

    :param master: Spark's master, such as "local[4]"; "sc://HOST:PORT" is a Spark Connect server and needs no Java.
    :param settings: Spark settings by name, such as {"spark.driver.memory": "2g"}.
    :raises JavaNotFound: No Java was found.
    """
    builder = SparkSession.Builder().appName(app_name)
    own_settings = settings or {}
    if master is not None and master.startswith("sc://"):
        return _configured(builder, own_settings).remote(master).getOrCreate()
    prepare(os.environ)
    builder = _configured(
        builder, {**local_settings(master), **executor_settings(os.environ), **own_settings}
    )
    if master is not None:
        builder = builder.master(master)
    return builder.getOrCreate()


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def local_settings(master: str | None) -> dict[str, str]:
    """Return the setting for Unix domain sockets between a local JVM and its Python workers, which are faster than TCP.

    Not for other masters: a worker's temporary directory may have too long a path for a socket.
    """
    is_local = master is not None and master.startswith("local") and hasattr(socket, "AF_UNIX")
    return {"spark.python.unix.domain.socket.enabled": "true"} if is_local else {}


def executor_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that give executors on other machines Arrow's variable, if this machine's JVM has it."""
    value = environment.get(UNCHECKED_ARROW)
    return {} if value is None else {f"spark.executorEnv.{UNCHECKED_ARROW}": value}


def prepare(environment: MutableMapping[str, str]) -> None:
    """Set the variables that Spark reads when it starts a JVM, unless spark-submit has started one already.

    :raises JavaNotFound: No Java was found.
    """
    if "PYSPARK_GATEWAY_PORT" in environment or "SPARK_REMOTE" in environment:
        return
    environment["JAVA_HOME"] = str(java_home(environment))
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    # this process is the driver; workers that read a data source would run the interpreter that the variable names
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
