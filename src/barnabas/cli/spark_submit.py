"""`barnabas spark-submit`: run a Spark application, with Java located and Barnabas shipped to the workers."""

import os
from typing import Annotated

import typer

from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import CommandError

#: Unknown options are passed to Spark; everything after the application is passed to the application.
_CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_DETAILS = r"""
pip install '.\[spark]' in a checkout installs Spark, and Java if there is none. SPARK_HOME, JAVA_HOME,
PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON select others. `barnabas spark-submit -- --help` shows Spark's options.
"""


@command(
    "spark-submit",
    example="spark-submit --master 'local[2]' application.py",
    details=_DETAILS,
    context_settings=_CONTEXT,
)
def spark_submit(
    context: typer.Context,
    ship: Annotated[
        bool, typer.Option(help="Ship Barnabas's own packages to the workers, unless the master is local.")
    ] = True,
    delegation_tokens: Annotated[
        bool,
        typer.Option(
            "--delegation-tokens",
            help="Let tasks log in to brokers with delegation tokens, so that executors get no secret.",
        ),
    ] = False,
) -> None:
    check_spark_installed()
    from pyspark_barnabas.runtime.java import JavaNotFound
    from pyspark_barnabas.runtime.submit import submission

    try:
        spark_call = submission(context.args, os.environ, ship=ship, delegation_tokens=delegation_tokens)
    except JavaNotFound as error:
        raise CommandError(str(error)) from error
    os.execve(spark_call.command[0], spark_call.command, spark_call.environment)
