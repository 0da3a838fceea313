import sys
from pathlib import Path

import pytest

from barnabas.policy.loading import PolicyLoadError, fresh_modules, instantiate
from support.policies import HEAD, PolicyModule, policy_module

KEY = "create.topic.policy.class.name"


def test_a_class_is_loaded_and_instantiated(naming: PolicyModule) -> None:
    assert type(instantiate(KEY, naming.named("Naming"), "validate")).__name__ == "Naming"


def test_a_nested_class_is_loaded(tmp_path: Path) -> None:
    with policy_module(tmp_path, HEAD + "class Outer:\n    Inner = Logged\n") as module:
        assert instantiate(KEY, module.named("Outer.Inner"), "validate")


def test_a_module_in_the_working_directory_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy_of_the_working_directory.py").write_text(HEAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert instantiate(KEY, "policy_of_the_working_directory:Logged", "validate")
    del sys.modules["policy_of_the_working_directory"]


@pytest.mark.parametrize(
    ("text", "class_name", "says"),
    [
        ("", "Missing", "has no Missing"),
        ("here = 1", "here", "must name a class"),
        ("class P:\n    pass", "P", "lacks validate, configure, close"),
        (
            HEAD + "class P(CreateTopicPolicy):\n    pass",
            "P",
            "cannot be created without arguments: TypeError",
        ),
        ("1 +", "P", ": SyntaxError"),
        ("raise SystemExit('no')", "P", ": SystemExit: no"),
    ],
)
def test_a_load_error_has_the_key_and_the_value(
    tmp_path: Path, text: str, class_name: str, says: str
) -> None:
    with policy_module(tmp_path, text) as module, pytest.raises(PolicyLoadError) as caught:
        instantiate(KEY, module.named(class_name), "validate")
    assert str(caught.value).startswith(f"Invalid value '{module.named(class_name)}' for {KEY}: ")
    assert says in str(caught.value)


def test_a_missing_module_is_reported_with_the_search_path() -> None:
    with pytest.raises(PolicyLoadError, match=r"No module named 'not_there'.*PYTHONPATH.*searched: /"):
        instantiate(KEY, "not_there:P", "validate")


def test_a_class_need_not_inherit_from_the_interface(tmp_path: Path) -> None:
    text = (
        "class P:\n    def configure(self, c): ...\n    def validate(self, r): ...\n    def close(self): ..."
    )
    with policy_module(tmp_path, text) as module:
        assert instantiate(KEY, module.named("P"), "validate")


def test_new_code_is_loaded_even_if_the_file_has_the_same_size_and_time(naming: PolicyModule) -> None:
    before = instantiate(KEY, naming.named("Naming"), "validate")
    naming.write(naming.path.read_text().replace("team.", "crew."))
    with fresh_modules(naming.named("Naming")):
        after = instantiate(KEY, naming.named("Naming"), "validate")
    assert type(before) is not type(after)
    assert "crew." in type(after).validate.__code__.co_consts


def test_imports_from_the_policys_own_package_are_reloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_of_a_policy"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "limits.py").write_text("LIMIT = 1\n")
    (package / "rules.py").write_text(
        f"from .limits import LIMIT\n{HEAD}\nclass P(Logged):\n    limit = LIMIT\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert instantiate(KEY, "package_of_a_policy.rules:P", "validate").limit == 1
    (package / "limits.py").write_text("LIMIT = 2\n")
    with fresh_modules("package_of_a_policy.rules:P"):
        assert instantiate(KEY, "package_of_a_policy.rules:P", "validate").limit == 2
    for name in [name for name in sys.modules if name.startswith("package_of_a_policy")]:
        del sys.modules[name]


def test_after_a_failure_the_former_modules_are_restored(naming: PolicyModule) -> None:
    before = instantiate(KEY, naming.named("Naming"), "validate")
    naming.write("1 +")
    with pytest.raises(PolicyLoadError), fresh_modules(naming.named("Naming")):
        instantiate(KEY, naming.named("Naming"), "validate")
    assert sys.modules[naming.name].Naming is type(before)


def test_barnabas_and_the_main_program_are_never_reloaded() -> None:
    before = {name: sys.modules[name] for name in ("barnabas.policy.loading", "__main__")}
    with fresh_modules("barnabas.policy.interfaces:CreateTopicPolicy", "__main__:Naming", ""):
        assert {name: sys.modules[name] for name in before} == before
