"""The command `barnabas`. Commands import their modules when they run, so that `--help` is fast."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from barnabas.cli import (
    acls,
    audit,
    brokers,
    completion,
    configs,
    console,
    consume,
    declared,
    elections,
    features,
    groups,
    jobs,
    log_dirs,
    metadata,
    pipeline,
    policy,
    produce,
    quorum,
    quotas,
    reassignments,
    records,
    serve,
    spark_submit,
    topics,
    transactions,
    users,
    verify_eos,
)
from barnabas.cli.catalogue import explain
from barnabas.cli.usage_errors import ParserError, report_abort, report_parser_error

_SERVING = "Serving"
_RECORDS = "Topics and records"
_GROUPS = "Groups and transactions"
_CLUSTER = "Cluster"
_PERMISSIONS = "Security and quotas"
_CHANGES = "Audit and declared state"
_SPARK = "Spark"
_SHELL = "Shell"

_PANELS = (
    _SERVING,
    _RECORDS,
    _GROUPS,
    _CLUSTER,
    _PERMISSIONS,
    _CHANGES,
    _SPARK,
    _SHELL,
)


class _Program(TyperGroup):
    """Lists commands in the order of their panels, and prints parser errors like other errors."""

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

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self._panel_index)

    def _panel_index(self, name: str) -> int:
        panel = getattr(self.commands[name], "rich_help_panel", None)
        return _PANELS.index(panel) if panel in _PANELS else len(_PANELS)


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
        from barnabas import __version__

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
    """A complete, wire-compatible Kafka broker in Python, and a command line for any Kafka."""


app.command("serve", rich_help_panel=_SERVING)(serve.serve)
app.command("console", rich_help_panel=_SERVING)(console.console)
app.add_typer(topics.app, name="topics", rich_help_panel=_RECORDS)
app.command("produce", rich_help_panel=_RECORDS)(produce.produce)
app.command("consume", rich_help_panel=_RECORDS)(consume.consume)
app.add_typer(records.app, name="records", rich_help_panel=_RECORDS)
app.add_typer(groups.app, name="groups", rich_help_panel=_GROUPS)
app.add_typer(transactions.app, name="transactions", rich_help_panel=_GROUPS)
app.add_typer(verify_eos.app, name="verify-eos", rich_help_panel=_GROUPS)
app.command("metadata", rich_help_panel=_CLUSTER)(metadata.metadata)
app.add_typer(brokers.app, name="brokers", rich_help_panel=_CLUSTER)
app.add_typer(configs.app, name="configs", rich_help_panel=_CLUSTER)
app.command("elections", rich_help_panel=_CLUSTER)(elections.elections)
app.add_typer(reassignments.app, name="reassignments", rich_help_panel=_CLUSTER)
app.add_typer(log_dirs.app, name="log-dirs", rich_help_panel=_CLUSTER)
app.add_typer(features.app, name="features", rich_help_panel=_CLUSTER)
app.add_typer(quorum.app, name="quorum", rich_help_panel=_CLUSTER)
app.add_typer(users.app, name="users", rich_help_panel=_PERMISSIONS)
app.add_typer(acls.app, name="acls", rich_help_panel=_PERMISSIONS)
app.add_typer(quotas.app, name="quotas", rich_help_panel=_PERMISSIONS)
app.add_typer(policy.app, name="policy", rich_help_panel=_PERMISSIONS)
app.command("audit", rich_help_panel=_CHANGES)(audit.audit)
app.command("history", rich_help_panel=_CHANGES)(audit.history)
app.command("rollback", rich_help_panel=_CHANGES)(audit.rollback)
app.command("export", rich_help_panel=_CHANGES)(declared.export)
app.command("plan", rich_help_panel=_CHANGES)(declared.plan)
app.command("apply", rich_help_panel=_CHANGES)(declared.apply)
app.command("drift", rich_help_panel=_CHANGES)(declared.drift)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_SPARK)
app.add_typer(pipeline.app, name="pipeline", rich_help_panel=_SPARK)
app.command("spark-submit", rich_help_panel=_SPARK, context_settings=spark_submit.CONTEXT)(
    spark_submit.spark_submit
)
app.command("completion", rich_help_panel=_SHELL)(completion.completion)
explain(app)


def main() -> None:
    """Run the command line; exits the process with one of the exit codes in `failures`."""
    with completion.handle_completion():
        app(prog_name="barnabas")
