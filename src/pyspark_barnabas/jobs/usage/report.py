"""What the job `usage` found as one HTML file. No IO."""

from collections import defaultdict

from pyspark_barnabas import report
from pyspark_barnabas.jobs.usage.job import Usage
from pyspark_barnabas.jobs.usage.statistics import HOT_FACTOR, RECENT_DAYS, PartitionUsage
from pyspark_barnabas.report import Series, bytes_text, count_text, percent_text

#: Topics that have a series of their own; the others are one together.
_SERIES_MAX = 7
_BARS_MAX = 24
_TOPICS_MAX = 12
_REST = "others"


def usage_html(found: Usage, cluster: str) -> str:
    """The document; `cluster` says where it was measured."""
    parts = [*_overview(found), *_growth(found), *_partitions(found), *_keys(found), *_suggestions(found)]
    return report.page("Usage of topics", cluster, parts)


def _overview(found: Usage) -> list[str]:
    topics = found.topics
    total = sum(each.size_bytes for each in topics)
    records = sum(each.records_count for each in topics)
    rows = [
        (
            each.topic,
            each.partitions_count,
            bytes_text(each.size_bytes),
            count_text(each.records_count),
            f"{each.skew:.2f}",
            bytes_text(each.recent_bytes_per_day),
            ", ".join(map(str, each.hot_partitions)),
        )
        for each in topics
    ]
    columns = ("TOPIC", "PARTITIONS", "BYTES", "RECORDS", "SKEW", "BYTES A DAY", "HOT")
    words = f"{len(topics)} topics keep {bytes_text(total)} in {count_text(records)} records."
    explained = (
        f"Skew is the largest partition over the mean. A partition is hot that was written at least {HOT_FACTOR:g} "
        f"times as much as the mean of its topic in the last {RECENT_DAYS} days; bytes a day are of those days."
    )
    return [report.paragraph(words), report.table(columns, rows), report.paragraph(explained, faint=True)]


def _growth(found: Usage) -> list[str]:
    grown = [each for each in found.growth if each.date]
    dates = sorted({each.date for each in grown})
    named = [each.topic for each in found.topics[:_SERIES_MAX]]
    parts = []
    for title, index, wording in (("Bytes by day", 3, bytes_text), ("Records by day", 4, count_text)):
        values: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for each in grown:
            values[each.topic if each.topic in named else _REST][each.date] += int(each[index])
        order = [name for name in (*named, _REST) if name in values]
        series = [Series(name, [values[name][day] for day in dates]) for name in order]
        parts.append(report.columns(title, dates, series, wording))
    words = "What is still there, by the day of the records; what retention has removed is not counted."
    return [report.heading("Growth"), report.paragraph(words, faint=True), *parts]


def _label(each: PartitionUsage) -> str:
    return f"{each.topic}-{each.partition}"


def _partitions(found: Usage) -> list[str]:
    its = sorted(found.partitions, key=lambda each: -each.size_bytes)[:_BARS_MAX]
    hot = [_label(each) for each in its if each.is_hot]
    parts = [
        report.heading("Partitions"),
        report.ranking(
            "The largest partitions, hot ones in red",
            [(_label(each), each.size_bytes) for each in its],
            bytes_text,
            marked=hot,
        ),
    ]
    for topic in [each for each in found.topics if each.partitions_count > 1][:_TOPICS_MAX]:
        days = [each for each in found.days if each.topic == topic.topic and each.date]
        dates = sorted({each.date for each in days})
        if not dates:
            continue
        sizes = {(each.partition, each.date): each.size_bytes for each in days}
        numbers = sorted(each.partition for each in found.partitions if each.topic == topic.topic)[:_BARS_MAX]
        values = [[sizes.get((number, day), 0) for day in dates] for number in numbers]
        title = f"{topic.topic}: bytes by partition and day"
        parts.append(report.grid(title, list(map(str, numbers)), dates, values, bytes_text))
    return parts


def _keys(found: Usage) -> list[str]:
    heavy = sorted(found.keys, key=lambda each: -each.records_count)[:_BARS_MAX]
    if not heavy:
        return []
    rows = [
        (each.topic, each.partition, each.key[:80], count_text(each.records_count), percent_text(each.share))
        for each in heavy
    ]
    columns = ("TOPIC", "PARTITION", "KEY", "RECORDS", "SHARE OF PARTITION")
    return [report.heading("Heavy keys"), report.table(columns, rows)]


def _suggestions(found: Usage) -> list[str]:
    parts = [report.heading("Suggestions")]
    said = found.advice
    if found.balance is not None and found.balance.moves:
        balance = found.balance
        shares = [
            (
                f"broker {home.broker}, {home.directory}",
                percent_text(share),
                percent_text(balance.after[home]),
            )
            for home, share in balance.before.items()
        ]
        columns = ("WHERE", "LOAD NOW", "LOAD THEN")
        words = "For kafka-reassign-partitions; load is half bytes, half what was written lately."
        parts += [
            report.table(columns, shares),
            report.paragraph(words, faint=True),
            report.code(balance.to_json()),
        ]
    elif not said:
        said = ["Nothing stands out."]
    return [*parts, *map(report.paragraph, said)]
