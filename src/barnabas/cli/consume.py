"""`barnabas consume`: print records as lines."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

FORMAT_HELP = (
    "Format as in kcat: %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp, "
    "%K %S lengths, %% percent, \\n \\t \\xNN (default: %s\\n)."
)


@handle_errors
def consume(
    topic: Annotated[
        str,
        typer.Argument(help="Topic to read.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the beginning of each partition.")
    ] = False,
    offset: Annotated[
        int | None,
        typer.Option("--offset", "-o", help="Start at this offset; -10 starts ten records before the end."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Start at this time: 2026-01-31T09:30, 1767225600000 or 10m (10 minutes ago).",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Partition to read (default: all); may be repeated."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="Exit after this many records.")
    ] = None,
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "--exit-at-end", "-e", help="Exit at the end of the log instead of waiting for new records."
        ),
    ] = False,
    committed: Annotated[
        bool,
        typer.Option("--committed", help="Read committed records only (isolation.level=read_committed)."),
    ] = False,
    form: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT", help=FORMAT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Print records as they arrive; without a start option, only new records."""
    from barnabas.cli.work import consume as work

    start = work.start(from_beginning=from_beginning, offset=offset, since=since)
    writer = work.writer(form, as_json=as_json)
    options = work.ConsumeOptions(topic, frozenset(partition or ()), start, count, exit_at_end, committed)
    work.run(bootstrap, options, writer)
