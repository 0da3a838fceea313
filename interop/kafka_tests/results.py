"""The Java runner's results of one class."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: The last line of a class whose tests have all ended.
CLASS_ENDED = "CLASS_ENDED"
STARTED = "STARTED"
#: The time limit of the run was reached; the interrupted test runs again.
INTERRUPTED = "INTERRUPTED"
#: Status of a test that was started this often and never ended.
NEVER_ENDED = "NEVER_ENDED"
_BEGUN_MAX = 2


@dataclass(frozen=True, slots=True)
class Result:
    """The last result of one of Kafka's tests."""

    class_name: str
    method: str
    name: str  #: as JUnit displays it, with the parameters
    id: str
    status: str  #: SUCCESSFUL, FAILED, ABORTED, SKIPPED or NEVER_ENDED
    test: bool = True  #: False for a failure outside of a test, in a class's own set-up
    ms: int = 0
    brokers: int = 0  #: number of brokers that the test requested
    several: bool = False  #: whether it got several brokers
    not_applicable: tuple[str, ...] = ()  #: "kind: what", in the order of the calls
    message: str = ""
    trace: str = ""
    log: str = ""  #: of the Barnabas process

    @property
    def key(self) -> str:
        """Class and method, by which differences are listed."""
        return f"{self.class_name}.{self.method}"


@dataclass(slots=True)
class ClassRun:
    """The results of a class by test id, and whether it is complete."""

    results: dict[str, Result] = field(default_factory=dict)
    complete: bool = False

    @property
    def done(self) -> list[str]:
        """Return the ids of tests that need not run again."""
        return [result.id for result in self.results.values() if result.test]


def read(lines: Iterable[str]) -> ClassRun:
    """Parse the lines of one class's file; a truncated line is ignored."""
    run = ClassRun()
    begun: dict[str, int] = {}
    for text in lines:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if line["status"] == CLASS_ENDED:
            run.complete = True
        elif line["status"] == INTERRUPTED:
            begun.clear()
        elif line["status"] == STARTED:
            begun[line["id"]] = begun.get(line["id"], 0) + 1
            if begun[line["id"]] >= _BEGUN_MAX:
                run.results[line["id"]] = _result(
                    line | {"status": NEVER_ENDED, "message": "the test does not end"}
                )
        else:
            run.results[line["id"]] = _result(line)
    return run


def _result(line: Mapping[str, Any]) -> Result:
    return Result(
        class_name=line.get("class", ""),
        method=line.get("method", ""),
        name=line["name"],
        id=line["id"],
        status=line["status"],
        test=line["test"],
        ms=line.get("ms", 0),
        brokers=line.get("brokers", 0),
        several=line.get("several", False),
        not_applicable=tuple(line.get("not_applicable", ())),
        message=line.get("message", ""),
        trace=line.get("trace", ""),
        log=line.get("log", ""),
    )
