"""The lock files have what pyproject.toml asks for, with hashes and without addresses."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted([*(ROOT / "requirements").glob("*.txt"), *(ROOT / "interop").glob("*.txt")])
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]
RUNTIME_EXTRAS = (
    "arrow",
    "console",
    "iceberg",
    "objects",
    "registry",
    "security",
    "spark",
    "tables",
    "tracing",
)


def entries_of(lock: Path) -> list[str]:
    """Return each entry, a requirement and its hashes, as one line without comments."""
    text = re.sub(r"^\s*#.*\n", "", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return text.replace("\\\n", "").splitlines()


def locked(lock: Path) -> dict[str, list[Requirement]]:
    """Return the requirements of a lock file by their names: several, if they depend on the version of Python."""
    found: dict[str, list[Requirement]] = {}
    for entry in entries_of(lock):
        requirement = Requirement(entry.partition(" --hash")[0].strip())
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def asked(*extras: str) -> list[str]:
    """Return what the product needs with some extras."""
    return [
        *PROJECT["dependencies"],
        *(each for name in extras for each in PROJECT["optional-dependencies"][name]),
    ]


def asked_in(name: str) -> list[str]:
    """Return the requirements in a file of the interop suite."""
    lines = (ROOT / "interop" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_version_is_exact_and_has_hashes(lock: Path) -> None:
    entry = re.compile(r"[a-z0-9.-]+==[^\s;*]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+")
    assert entries_of(lock)
    assert [line for line in entries_of(lock) if not entry.fullmatch(line.rstrip())] == []
    assert "://" not in lock.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("requirements/all.txt", asked(*RUNTIME_EXTRAS)),
        ("requirements/console.txt", asked("console")),
        ("requirements/test.txt", asked("arrow", "console", "security", "spark", "test", "check")),
        ("requirements/build.txt", [*GROUPS["build"], *SETTINGS["build-system"]["requires"]]),
        ("requirements/release.txt", [each for each in GROUPS["release"] if isinstance(each, str)]),
        ("interop/requirements.txt", asked_in("requirements.in")),
        ("interop/connect-client.txt", asked_in("connect-client.in")),
    ],
)
def test_what_is_asked_for_is_locked(lock: str, requirements: list[str]) -> None:
    """After a change of pyproject.toml, `make lock` writes the files again."""
    found = locked(ROOT / lock)
    missing = [
        text
        for text in requirements
        if (wanted := Requirement(text)).name != "barnabas"
        and not any(
            wanted.specifier.contains(next(iter(each.specifier)).version, prereleases=True)
            for each in found.get(canonicalize_name(wanted.name), [])
        )
    ]
    assert missing == []


def test_all_extras_are_locked() -> None:
    assert {*PROJECT["optional-dependencies"]} == {*RUNTIME_EXTRAS, "test", "check"}
