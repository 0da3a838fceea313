"""`barnabas spark-pipelines`: run a project of Spark's Declarative Pipelines, with Java and the interpreter located."""

import os
from pathlib import Path

import typer

from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import CommandError

#: All options are passed to Spark.
_CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_DETAILS = r"""
Spark's own spark-pipelines, with the same commands: init, dry-run, run. It needs no activated environment. The
directory conf beside the spec, if it has a spark-defaults.conf, becomes SPARK_CONF_DIR. SPARK_HOME, JAVA_HOME,
PYSPARK_PYTHON and SPARK_CONF_DIR select others. `barnabas spark-pipelines -- --help` shows Spark's options.
"""


@command(
    "spark-pipelines",
    example="spark-pipelines run --spec spark-pipeline.yml",
    details=_DETAILS,
    context_settings=_CONTEXT,
)
def spark_pipelines(context: typer.Context) -> None:
    check_spark_installed()
    from pyspark_barnabas.runtime.declarative import pipelines_command
    from pyspark_barnabas.runtime.java import JavaNotFound

    try:
        spark_call = pipelines_command(context.args, os.environ, Path.cwd())
    except JavaNotFound as error:
        raise CommandError(str(error)) from error
    os.execve(spark_call.command[0], spark_call.command, spark_call.environment)
