"""Command of `barnabas spark-pipelines`: Spark's spark-pipelines, with Java, Spark and the interpreter found.

Spark's own script runs the `python3` of PATH, which has no Spark unless its environment is activated.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark_barnabas.runtime.java import java_home
from pyspark_barnabas.runtime.submit import Submission, spark_home, value_of

_SPECS = ("spark-pipeline.yaml", "spark-pipeline.yml")
#: Spark's settings of a project, beside its spec. Settings of the session, such as the catalog, cannot be in the spec.
_CONF = "conf"
_DEFAULTS = "spark-defaults.conf"


def pipelines_command(
    arguments: Sequence[str], environment: Mapping[str, str], directory: Path
) -> Submission:
    """Build the command of Spark's spark-pipelines with `arguments` in its own syntax.

    :param directory: The working directory.
    :raises JavaNotFound: No Java was found.
    """
    variables = dict(environment)
    variables["JAVA_HOME"] = str(java_home(environment))
    variables.setdefault("SPARK_HOME", str(spark_home()))
    variables.setdefault("PYSPARK_PYTHON", sys.executable)
    # the driver plans data sources with its own interpreter, and so must workers
    variables.pop("PYSPARK_DRIVER_PYTHON", None)
    project = project_of(arguments, directory)
    if project is not None and (project / _CONF / _DEFAULTS).is_file():
        variables.setdefault("SPARK_CONF_DIR", str(project / _CONF))
    return Submission(
        [os.path.join(variables["SPARK_HOME"], "bin", "spark-pipelines"), *arguments], variables
    )


def project_of(arguments: Sequence[str], directory: Path) -> Path | None:
    """Return the directory of the spec: that of --spec, else the nearest around the working directory."""
    spec = value_of(arguments, "--spec", "")
    if spec:
        return (directory / spec).parent.absolute()
    around = [directory.absolute(), *directory.absolute().parents]
    return next((each for each in around if any((each / name).is_file() for name in _SPECS)), None)
