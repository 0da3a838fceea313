"""`barnabas jobs`: maintenance jobs, most of which run on Spark.

Spark and Arrow, which may not be installed, are imported only by commands that run.
"""

from barnabas.cli.jobs.archive import archive_topics
from barnabas.cli.jobs.audit import summarize_audit
from barnabas.cli.jobs.rekey import rekey_topic
from barnabas.cli.jobs.restore import restore_topics
from barnabas.cli.jobs.scrub import scrub_logs
from barnabas.cli.jobs.translate_offsets import translate_offsets
from barnabas.cli.jobs.usage import measure_usage
from barnabas.cli.support.commands import command_group

app = command_group(
    scrub_logs,
    measure_usage,
    summarize_audit,
    rekey_topic,
    archive_topics,
    restore_topics,
    translate_offsets,
)
