"""The tests of an earlier report, as far as it says, for classes whose results are no longer there."""

import re
from collections.abc import Collection, Iterator

from interop.kafka_tests.classify import Classification, Outcome
from interop.kafka_tests.results import Result

_COUNTED = re.compile(r"(\d+) (.+)")
_TESTS = re.compile(r"(\S+?)\.(\S+)(?: \((\d+)\))?")
_UNKNOWN = re.compile(r"- ([^.]+)\.([^:]+): `(.*)`")

_Classified = tuple[Result, Classification]


def classes(page: str, names: Collection[str]) -> dict[str, list[_Classified]]:
    """Return a test for each one that the page counts, by class; classes that are not complete are left out.

    :param names: All classes of tests.
    """
    by_label = {name.rpartition(".")[2]: name for name in names} | {name: name for name in names}
    failures = list(_failures(page))
    found = {}
    for label, _, passed, collapsed, failed, kinds in _rows(page, "## Classes", 6):
        if label not in by_label:  # of another version of Kafka, or not complete
            continue
        name = by_label[label]
        tests = [_test(name, "passed", brokers=2) for _ in range(int(collapsed or 0))]
        tests += [_test(name, "passed") for _ in range(int(passed or 0) - int(collapsed or 0))]
        mine = [each for each in failures if each[0].class_name == name.rpartition(".")[2]]
        for each in mine[: int(failed or 0)]:
            failures.remove(each)
            tests.append(each)
        for number, kind in _COUNTED.findall(kinds.replace(", ", "\n")):
            tests += [_test(name, "not applicable", kind=kind) for _ in range(int(number))]
        found[name] = tests
    return found


def _test(
    class_name: str, outcome: Outcome, method: str = "", brokers: int = 1, kind: str = "", reason: str = ""
) -> _Classified:
    return (
        Result(class_name, method, "", "", "", brokers=brokers, message=reason),
        Classification(outcome, kind, reason),
    )


def _failures(page: str) -> Iterator[_Classified]:
    """Yield the failed tests; their class names are short."""
    for reason, names in _rows(page, "## Failures", 2):
        for class_name, method, number in _TESTS.findall(names.replace(", ", "\n")):
            for _ in range(int(number or 1)):
                yield _test(class_name, "listed", method, reason=reason)
    for class_name, method, message in _UNKNOWN.findall(page):
        yield _test(class_name, "failed", method, reason=message)


def _rows(page: str, heading: str, cells_count: int) -> Iterator[list[str]]:
    """Yield the cells of each line of the table below a heading, without the table's own head."""
    section = page.partition(heading + "\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == cells_count:
            yield cells
