import pytest

from barnabas.log.startup.replica_selection import AmbiguousReplicasError, FoundReplica, Role, decide_roles

A, B, C = 0, 1, 2


def log(
    log_dir: int, end: int = 5, epoch: int = 0, *, marked: bool = False, topic: bytes = b"t"
) -> FoundReplica:
    return FoundReplica(log_dir, topic, False, marked, epoch, end)


def future(log_dir: int, end: int = 3, epoch: int = 0, *, topic: bytes = b"t") -> FoundReplica:
    return FoundReplica(log_dir, topic, True, True, epoch, end)


CURRENT, FUTURE, COPY, STRAY, LEFT = Role.CURRENT, Role.FUTURE, Role.COPY, Role.STRAY, Role.LEFT


@pytest.mark.parametrize(
    ("found", "roles"),
    [
        ([log(A)], [CURRENT]),
        ([log(A, marked=True)], [CURRENT]),
        ([log(A), future(B)], [CURRENT, FUTURE]),
        ([future(B), log(A)], [FUTURE, CURRENT]),
        ([log(A), future(B, end=9)], [CURRENT, FUTURE]),
        ([log(A), future(A)], [CURRENT, COPY]),
        ([log(A), future(B, end=3), future(C, end=4)], [CURRENT, COPY, FUTURE]),
        ([log(A), future(B, end=9, epoch=0), future(C, end=4, epoch=1)], [CURRENT, COPY, FUTURE]),
        ([log(A), future(B, topic=b"u")], [CURRENT, STRAY]),
        ([log(A), future(B, topic=b"u", end=9), future(C)], [CURRENT, STRAY, FUTURE]),
        ([log(A), log(B, marked=True)], [COPY, CURRENT]),
        ([log(A), log(B, end=6, marked=True)], [COPY, CURRENT]),
        ([log(A, end=6), log(B, marked=True)], [CURRENT, COPY]),
        ([log(A, end=6, epoch=0), log(B, end=5, epoch=1, marked=True)], [COPY, CURRENT]),
        ([log(A), log(B, marked=True), future(A)], [COPY, CURRENT, FUTURE]),
        ([future(B)], [CURRENT]),
        ([future(B, end=3), future(C, end=4)], [COPY, CURRENT]),
    ],
)
def test_the_replica_that_reaches_furthest_is_current_and_the_others_get_roles(
    found: list[FoundReplica], roles: list[Role]
) -> None:
    assert decide_roles(found, any_offline=False) == roles


@pytest.mark.parametrize(
    ("found", "roles"),
    [
        ([log(A)], [CURRENT]),
        ([log(A), future(B)], [CURRENT, FUTURE]),
        ([log(A), log(B, marked=True)], [COPY, CURRENT]),
        ([future(B)], [LEFT]),
        ([future(B), future(C)], [LEFT, LEFT]),
    ],
)
def test_a_future_replica_is_left_unchanged_while_its_log_may_be_offline(
    found: list[FoundReplica], roles: list[Role]
) -> None:
    assert decide_roles(found, any_offline=True) == roles


@pytest.mark.parametrize(
    "found",
    [
        [log(A), log(B)],
        [log(A, marked=True), log(B, marked=True)],
        [log(A), log(B, marked=True, topic=b"u")],
        [log(A), log(B), log(C, marked=True)],
    ],
)
def test_two_logs_that_no_move_explains_are_ambiguous(found: list[FoundReplica]) -> None:
    with pytest.raises(AmbiguousReplicasError):
        decide_roles(found, any_offline=False)
