"""The command `barnabas`, and the table of its commands."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from barnabas import __version__
from barnabas.cli.support.lazy import LazyGroup, TopLevel
from barnabas.cli.support.shell import handle_completion
from barnabas.cli.support.usage_errors import ParserError, report_abort, report_parser_error

_SERVING = "Serving"
_RECORDS = "Topics and records"
_GROUPS = "Groups and transactions"
_CLUSTER = "Cluster"
_PERMISSIONS = "Security and quotas"
_CHANGES = "Audit and declared state"
_SPARK = "Spark"
_SHELL = "Shell"

#: In the order of the help; the commands of a panel stand together.
COMMANDS = (
    TopLevel("serve", "serve:serve", _SERVING, "Run a Kafka broker until it is stopped."),
    TopLevel(
        "console",
        "console:console",
        _SERVING,
        "Serve the web console. Users log in to the cluster; with --command-config everyone acts as that user.",
    ),
    TopLevel(
        "registry",
        "registry:registry",
        _SERVING,
        "Serve a schema registry with Confluent's REST API, which keeps its schemas in a topic of the cluster.",
    ),
    TopLevel(
        "tables",
        "tables:app",
        _SERVING,
        "Keep Delta and Iceberg tables of topics, each record exactly once; show their status.",
    ),
    TopLevel("produce", "produce:produce", _RECORDS, "Send each line of stdin (or of a file) as a record."),
    TopLevel(
        "consume",
        "consume:consume",
        _RECORDS,
        "Print records as they arrive; without a start option, only new records.",
    ),
    TopLevel(
        "topics",
        "topics:app",
        _RECORDS,
        "List, create, describe, delete and undelete topics, add partitions.",
    ),
    TopLevel(
        "records",
        "records:app",
        _RECORDS,
        "Show the first and last offsets of partitions, delete old records.",
    ),
    TopLevel(
        "groups",
        "groups:app",
        _GROUPS,
        "List, describe and delete groups, show and change their offsets.",
    ),
    TopLevel(
        "transactions",
        "transactions:app",
        _GROUPS,
        "Show transactions and producers, abort hanging transactions.",
    ),
    TopLevel(
        "verify-eos",
        "verify_eos:app",
        _GROUPS,
        "Test the exactly-once semantics of an application that reads, transforms and writes in transactions.",
    ),
    TopLevel(
        "metadata",
        "metadata:metadata",
        _CLUSTER,
        "Show the brokers and topics of the cluster; with --json also the replicas of partitions.",
    ),
    TopLevel(
        "cluster",
        "cluster:app",
        _CLUSTER,
        "Show the status of the cluster: brokers, their metadata and load, unhealthy partitions.",
    ),
    TopLevel(
        "elections",
        "elections:elections",
        _CLUSTER,
        "Elect the preferred leaders of partitions, or with --unclean leaders for offline partitions.",
    ),
    TopLevel(
        "brokers", "brokers:app", _CLUSTER, "List brokers, show the APIs that they support, unregister one."
    ),
    TopLevel(
        "configs",
        "configs:app",
        _CLUSTER,
        "List, get, set, delete and replace configs of topics, brokers, loggers, groups and client metrics.",
    ),
    TopLevel(
        "reassignments",
        "reassignments:app",
        _CLUSTER,
        "Move partitions to other brokers, list and cancel reassignments.",
    ),
    TopLevel(
        "log-dirs",
        "log_dirs:app",
        _CLUSTER,
        "Describe the log directories of brokers, and move replicas between them.",
    ),
    TopLevel("features", "features:app", _CLUSTER, "List the features of the cluster and set their levels."),
    TopLevel(
        "quorum", "quorum:app", _CLUSTER, "Describe the metadata quorum, add, remove and update voters."
    ),
    TopLevel("users", "users:app", _PERMISSIONS, "List, add and remove users with SCRAM credentials."),
    TopLevel(
        "tokens",
        "tokens:app",
        _PERMISSIONS,
        "List, create, renew and expire delegation tokens, with which clients log in without a password.",
    ),
    TopLevel("acls", "acls:app", _PERMISSIONS, "List, add and remove ACLs."),
    TopLevel(
        "quotas",
        "quotas:app",
        _PERMISSIONS,
        "List, set and remove quotas of users, client ids and addresses.",
    ),
    TopLevel("policy", "policy:app", _PERMISSIONS, "Test policies."),
    TopLevel(
        "audit",
        "audit:audit",
        _CHANGES,
        "Show changes of the cluster and refused changes, with the principal that requested them.",
    ),
    TopLevel(
        "history",
        "audit:history",
        _CHANGES,
        "Show the changes of a resource; with --at its state at a revision, with --since what changed since one.",
    ),
    TopLevel(
        "rollback",
        "audit:rollback",
        _CHANGES,
        "Set the configs, ACLs, quotas and credentials of a resource back to those of a revision.",
    ),
    TopLevel(
        "export",
        "declared.export:export",
        _CHANGES,
        "Export topics, ACLs, quotas, users and configs of a cluster as a declared state, without secrets.",
    ),
    TopLevel(
        "plan",
        "declared.plan:plan",
        _CHANGES,
        "Show what would change, key by key, and what is wrong. Exit code: 0 no changes, 2 changes, else failed.",
    ),
    TopLevel(
        "apply",
        "declared.apply:apply",
        _CHANGES,
        "Apply the changes that `plan` shows, after confirmation. Run it again to continue an interrupted apply.",
    ),
    TopLevel(
        "drift",
        "declared.drift:drift",
        _CHANGES,
        "Show differences from a declared state or another cluster. Exit code: 0 no drift, 2 drift, else failed.",
    ),
    TopLevel(
        "spark-submit",
        "spark_submit:spark_submit",
        _SPARK,
        "Run an application on Spark. Arguments: options of spark-submit, the application, and its arguments.",
    ),
    TopLevel(
        "spark-pipelines",
        "spark_pipelines:spark_pipelines",
        _SPARK,
        "Run a project of Spark's Declarative Pipelines. Arguments: a command of spark-pipelines, and its options.",
    ),
    TopLevel(
        "jobs",
        "jobs:app",
        _SPARK,
        "Check, archive, restore and rekey topics on Spark; measure topics and summarize the audit without it.",
    ),
    TopLevel("pipeline", "pipeline:app", _SPARK, "Run pipelines on Spark, show their plan and status."),
    TopLevel(
        "completion",
        "completion:completion",
        _SHELL,
        "Print a script that lets the shell complete commands, options, and names in the cluster.",
    ),
)


class _Program(LazyGroup):
    """Prints parser errors like other errors."""

    rows = COMMANDS

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line; in standalone mode, exit the process."""
        arguments = sys.argv[1:] if args is None else list(args)
        run = partial(super().main, arguments, prog_name, complete_var, False, windows_expand_args, **extra)
        if not standalone_mode:
            return run()
        try:
            code = run()
        except ParserError as error:
            code = report_parser_error(error, arguments)
        except typer.Abort:
            code = report_abort(arguments)
        sys.exit(code)


app = typer.Typer(
    name="barnabas",
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        print(f"barnabas {__version__}")
        raise typer.Exit


@app.callback(
    epilog="`barnabas COMMAND --help` shows an example of each command; docs/cli.md lists the exit codes."
)
def barnabas(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """A Kafka broker in Python, and a command line for any Kafka cluster."""


def main() -> None:
    """Run the command line; exits the process with one of the exit codes in `failures`."""
    with handle_completion():
        app(prog_name="barnabas")
