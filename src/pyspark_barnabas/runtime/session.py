"""A Spark session with nothing to set up first: Java is found, and Python workers run this interpreter."""

import os
import socket
import sys
from collections.abc import Mapping, MutableMapping

from pyspark.sql import SparkSession

from pyspark_barnabas.runtime.java import UNCHECKED_ARROW, java_home


def spark_session(
    app_name: str = "barnabas", *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session, with a Java found for it if this process has to start one.

    Python workers on this machine run this interpreter, if PYSPARK_PYTHON does not say another; those of a local master
    are talked to over Unix domain sockets. Spark reads what they send without looking at the bounds of each value.

    :param master: As Spark's own, such as "local[4]"; "sc://HOST:PORT" is a Spark Connect server's, and needs no Java.
    :param settings: Spark's, by name, such as {"spark.driver.memory": "2g"}.
    :raises JavaNotFound: There is no Java to run it on.
    """
    builder = SparkSession.Builder().appName(app_name)
    given = settings or {}
    if master is not None and master.startswith("sc://"):
        return _configured(builder, given).remote(master).getOrCreate()
    prepare(os.environ)
    builder = _configured(builder, {**local_settings(master), **executor_settings(os.environ), **given})
    if master is not None:
        builder = builder.master(master)
    return builder.getOrCreate()


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


def local_settings(master: str | None) -> dict[str, str]:
    """Unix domain sockets between a local JVM and its Python workers: rows pass through them with less work.

    Elsewhere a worker's temporary directory may have too long a name for them.
    """
    is_local = master is not None and master.startswith("local") and hasattr(socket, "AF_UNIX")
    return {"spark.python.unix.domain.socket.enabled": "true"} if is_local else {}


def executor_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What executors on other machines get of what is prepared for the JVM of this one."""
    return {f"spark.executorEnv.{UNCHECKED_ARROW}": environment.get(UNCHECKED_ARROW, "true")}


def prepare(environment: MutableMapping[str, str]) -> None:
    """Set what Spark reads when it starts a JVM; nothing when spark-submit has started one for this process.

    :raises JavaNotFound: There is no Java to run it on.
    """
    if "PYSPARK_GATEWAY_PORT" in environment or "SPARK_REMOTE" in environment:
        return
    environment["JAVA_HOME"] = str(java_home(environment))
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault(UNCHECKED_ARROW, "true")
    # this process is the driver; Spark would let workers that read a data source run what it names
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
