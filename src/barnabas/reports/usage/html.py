"""HTML report of usage. No IO."""

from collections import defaultdict

from barnabas.reports import document
from barnabas.reports.document import Series, bytes_text, count_text, percent_text
from barnabas.reports.usage.measuring import Usage
from barnabas.reports.usage.statistics import HOT_FACTOR, RECENT_DAYS, PartitionUsage

#: Maximum number of topics with a series of their own; the rest are summed into one.
_SERIES_MAX = 7
_BARS_MAX = 24
_TOPICS_MAX = 12
_REST = "others"


def usage_html(usage: Usage, cluster: str) -> str:
    """Return the HTML document; `cluster` names the cluster in the header."""
    parts = [*_overview(usage), *_growth(usage), *_partitions(usage), *_keys(usage), *_suggestions(usage)]
    return document.page("Usage of topics", cluster, parts)


def _overview(usage: Usage) -> list[str]:
    topics = usage.topics
    total = sum(topic.size_bytes for topic in topics)
    records = sum(topic.records_count for topic in topics)
    rows = [
        (
            topic.topic,
            topic.partitions_count,
            bytes_text(topic.size_bytes),
            count_text(topic.records_count),
            f"{topic.skew:.2f}",
            bytes_text(topic.recent_bytes_per_day),
            ", ".join(map(str, topic.hot_partitions)),
        )
        for topic in topics
    ]
    columns = ("TOPIC", "PARTITIONS", "BYTES", "RECORDS", "SKEW", "BYTES PER DAY", "HOT")
    summary = f"{len(topics)} topics have {bytes_text(total)} in {count_text(records)} records."
    note = (
        f"Skew is the largest partition divided by the mean. A partition is hot if at least {HOT_FACTOR:g} times the "
        f"mean of its topic was written to it in the last {RECENT_DAYS} days; bytes per day are of those days."
    )
    return [document.paragraph(summary), document.table(columns, rows), document.paragraph(note, faint=True)]


def _growth(usage: Usage) -> list[str]:
    growth = [day for day in usage.growth if day.date]
    dates = sorted({day.date for day in growth})
    named = [topic.topic for topic in usage.topics[:_SERIES_MAX]]
    parts = []
    for title, index, text_of in (("Bytes by day", 3, bytes_text), ("Records by day", 4, count_text)):
        values: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for day in growth:
            values[day.topic if day.topic in named else _REST][day.date] += int(day[index])
        order = [name for name in (*named, _REST) if name in values]
        series = [Series(name, [values[name][date] for date in dates]) for name in order]
        parts.append(document.columns(title, dates, series, text_of))
    note = "Records that still exist, by the day of their timestamp; records removed by retention are not counted."
    return [document.heading("Growth"), document.paragraph(note, faint=True), *parts]


def _label(partition: PartitionUsage) -> str:
    return f"{partition.topic}-{partition.partition}"


def _partitions(usage: Usage) -> list[str]:
    largest = sorted(usage.partitions, key=lambda partition: -partition.size_bytes)[:_BARS_MAX]
    hot = [_label(partition) for partition in largest if partition.is_hot]
    parts = [
        document.heading("Partitions"),
        document.ranking(
            "Largest partitions, hot ones in red",
            [(_label(partition), partition.size_bytes) for partition in largest],
            bytes_text,
            marked=hot,
        ),
    ]
    for topic in [topic for topic in usage.topics if topic.partitions_count > 1][:_TOPICS_MAX]:
        days = [day for day in usage.days if day.topic == topic.topic and day.date]
        dates = sorted({day.date for day in days})
        if not dates:
            continue
        sizes = {(day.partition, day.date): day.size_bytes for day in days}
        numbers = sorted(
            partition.partition for partition in usage.partitions if partition.topic == topic.topic
        )[:_BARS_MAX]
        values = [[sizes.get((number, date), 0) for date in dates] for number in numbers]
        title = f"{topic.topic}: bytes by partition and day"
        parts.append(document.grid(title, list(map(str, numbers)), dates, values, bytes_text))
    return parts


def _keys(usage: Usage) -> list[str]:
    hot_keys = sorted(usage.keys, key=lambda key: -key.records_count)[:_BARS_MAX]
    if not hot_keys:
        return []
    rows = [
        (key.topic, key.partition, key.key[:80], count_text(key.records_count), percent_text(key.share))
        for key in hot_keys
    ]
    columns = ("TOPIC", "PARTITION", "KEY", "RECORDS", "SHARE OF PARTITION")
    return [document.heading("Hot keys"), document.table(columns, rows)]


def _suggestions(usage: Usage) -> list[str]:
    parts = [document.heading("Suggestions")]
    advice = usage.advice
    if usage.balance is not None and usage.balance.moves:
        balance = usage.balance
        shares = [
            (
                f"broker {home.broker}, {home.directory}",
                percent_text(share),
                percent_text(balance.after[home]),
            )
            for home, share in balance.before.items()
        ]
        columns = ("LOG DIRECTORY", "LOAD NOW", "LOAD AFTER")
        note = "For kafka-reassign-partitions; load is half the share of bytes and half the share of recent writes."
        parts += [
            document.table(columns, shares),
            document.paragraph(note, faint=True),
            document.code(balance.to_json()),
        ]
    elif not advice:
        advice = ["No suggestions."]
    return [*parts, *map(document.paragraph, advice)]
