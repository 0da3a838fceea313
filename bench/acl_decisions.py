"""Duration of an authorization decision with 10,000 ACLs: ``python -m bench.acl_decisions``."""

import time
from itertools import cycle, islice

from barnabas.base.clock import SystemClock
from barnabas.metadata.acls import acl_key
from barnabas.security.acl_use import AclUseRecord
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.wire.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

ACLS_COUNT = 10_000
QUESTIONS_COUNT = 100_000
HOST = "10.0.0.1"


def bindings() -> list[AclBinding]:
    """Return half ACLs on topics by name, a quarter on prefixes, a quarter denials."""
    made = []
    for number in range(ACLS_COUNT):
        prefixed, denies = number % 4 == 1, number % 4 == 3
        made.append(
            AclBinding(
                ResourceType.TOPIC,
                f"team{number % 500}." if prefixed else f"team{number % 500}.topic{number}",
                PatternType.PREFIXED if prefixed else PatternType.LITERAL,
                f"User:user{number % 100}",
                "*",
                AclOperation.READ if number % 2 else AclOperation.WRITE,
                AclPermission.DENY if denies else AclPermission.ALLOW,
            )
        )
    return made


def measure(authorizer: StandardAuthorizer, names_count: int) -> float:
    """Return microseconds per decision, with requests on this many topics in turn."""
    names = [(f"User:user{n % 100}", f"team{n % 500}.topic{n}") for n in range(names_count)]
    questions = list(islice(cycle(names), QUESTIONS_COUNT))
    started_s = time.process_time()
    for principal, name in questions:
        authorizer.known(principal, HOST, AclOperation.READ, ResourceType.TOPIC, name)
    return (time.process_time() - started_s) / QUESTIONS_COUNT * 1e6


def measure_all() -> dict[str, float]:
    """Return microseconds per decision, by the kind of request."""
    authorizer = StandardAuthorizer(
        {acl_key(each): each for each in bindings()},
        ["User:admin"],
        allow_if_no_acl=False,
        clock=SystemClock(),
        use=AclUseRecord.empty(0),
    )
    return {"cached": measure(authorizer, 1_000), "not cached": measure(authorizer, QUESTIONS_COUNT)}


if __name__ == "__main__":
    for kind, time_us in measure_all().items():
        print(f"acl-decision, {kind}: {time_us:.2f} us")
