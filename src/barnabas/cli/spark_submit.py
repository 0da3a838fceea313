"""`barnabas spark-submit`: an application for Spark, with Java found and Barnabas sent along."""

import os
from typing import Annotated

import typer

from barnabas.cli.failures import CommandError, handle_errors
from barnabas.cli.spark import check_spark_installed

#: Options that are not ours are Spark's, and behind the application everything is the application's.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


@handle_errors
def spark_submit(
    context: typer.Context,
    ship: Annotated[
        bool, typer.Option(help="Send Barnabas's own packages to the workers, unless the master is local.")
    ] = True,
) -> None:
    r"""Run an application on Spark: spark-submit's own options, the application, and its arguments.

    Spark comes with pip install '.\[spark]' in a checkout; Java too, where there is none. SPARK_HOME, JAVA_HOME,
    PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON name others. `barnabas spark-submit -- --help` shows Spark's options.
    """
    check_spark_installed()
    from pyspark_barnabas.runtime.java import JavaNotFound
    from pyspark_barnabas.runtime.submit import submission

    try:
        submitted = submission(context.args, os.environ, ship=ship)
    except JavaNotFound as error:
        raise CommandError(str(error)) from error
    os.execve(submitted.command[0], submitted.command, submitted.environment)
