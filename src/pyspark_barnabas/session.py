"""A Spark session with nothing to set up first: Java is found, and Python workers run this interpreter."""

import os
import sys
from collections.abc import Mapping, MutableMapping

from pyspark.sql import SparkSession

from pyspark_barnabas.java import java_home


def spark_session(
    app_name: str = "barnabas", *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session, with a Java found for it if this process has to start one.

    Python workers on this machine run this interpreter, if PYSPARK_PYTHON does not say another.

    :param master: As Spark's own, such as "local[4]"; "sc://HOST:PORT" is a Spark Connect server's, and needs no Java.
    :param settings: Spark's, by name, such as {"spark.driver.memory": "2g"}.
    :raises JavaNotFound: There is no Java to run it on.
    """
    builder = SparkSession.Builder().appName(app_name)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    if master is not None and master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    if master is not None:
        builder = builder.master(master)
    prepare(os.environ)
    return builder.getOrCreate()


def prepare(environment: MutableMapping[str, str]) -> None:
    """Set what Spark reads when it starts a JVM; nothing when spark-submit has started one for this process.

    :raises JavaNotFound: There is no Java to run it on.
    """
    if "PYSPARK_GATEWAY_PORT" in environment or "SPARK_REMOTE" in environment:
        return
    environment["JAVA_HOME"] = str(java_home(environment))
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    # this process is the driver; Spark would let workers that read a data source run what it names
    environment.pop("PYSPARK_DRIVER_PYTHON", None)
