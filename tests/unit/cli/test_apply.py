import pytest

from barnabas.cli.declared.apply import Consent
from barnabas.cli.support.failures import CommandError
from barnabas.declared.diff import ChangeAction, Diagnostic, Level, ResourceChange
from barnabas.declared.plan import Plan
from barnabas.declared.state import Section

BOTH = Plan(
    [
        ResourceChange(
            Section.USERS,
            "me",
            "SCRAM-SHA-256",
            ChangeAction.DELETE,
            True,
            None,
            (Diagnostic(Level.DESTRUCTIVE, "deleted"), Diagnostic(Level.LOCKOUT, "locked out")),
        )
    ]
)


@pytest.mark.parametrize(
    ("consent", "missing"),
    [
        (Consent(yes=True, destroy=True), "lock you out"),
        (Consent(yes=True, lockout=True), "1 change is destructive"),
        (Consent(destroy=True, lockout=True), "cannot ask for confirmation"),
    ],
)
def test_a_destructive_change_that_is_a_lockout_needs_every_consent(consent: Consent, missing: str) -> None:
    with pytest.raises(CommandError, match=missing):
        consent.ask(BOTH)
    assert Consent(yes=True, destroy=True, lockout=True).ask(BOTH)
