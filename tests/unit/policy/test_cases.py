from pathlib import Path

import pytest

from barnabas.base.yaml_nodes import YamlError
from barnabas.policy.cases import Case, CaseResult, CaseStatus, Counts, Trial, read_cases
from barnabas.policy.policies import PolicySettings
from support.loop import on_loop
from support.policies import HEAD, policy_module

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "policies"

#: Rejects everything with a message that contains its arguments.
ECHO = (
    HEAD
    + """
class Echo(Logged):
    def validate(self, request):
        if request.topic == "error":
            raise ValueError
        raise PolicyViolation(
            f"{request.num_partitions} {request.replication_factor} "
            f"{request.replicas_assignments and dict(request.replicas_assignments)} {dict(request.configs)}"
        )

class EchoConfigs(AlterConfigPolicy):
    def validate(self, request):
        raise PolicyViolation(f"{request.resource.type.name} {request.resource.name} {dict(request.configs)}")
"""
)


def cases_of(directory: Path, text: str) -> list[Case]:
    path = directory / "cases.yaml"
    path.write_text(text)
    return read_cases(path, Counts(partitions=3, replication_factor=2))


async def outcomes(settings: PolicySettings, cases: list[Case]) -> list[CaseResult]:
    async with Trial(settings) as trial:
        return [await trial.outcome(case.ask) for case in cases]


@on_loop
async def test_the_examples_cases_have_their_expected_results() -> None:
    cases = read_cases(EXAMPLES / "cases.yaml", Counts())
    found = await outcomes(PolicySettings(file=EXAMPLES / "policies.yaml"), cases)
    assert [
        case.line for case, outcome in zip(cases, found, strict=True) if not outcome.is_as_expected(case)
    ] == []
    assert {outcome.result for outcome in found} == {
        CaseStatus.ALLOWED,
        CaseStatus.WARNED,
        CaseStatus.REFUSED,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{topic: t}", "3 2 None {}"),
        ("{topic: t, partitions: 5, replication_factor: 1}", "5 1 None {}"),
        ("{topic: t, assignments: {0: [1, 2]}}", "None None {0: (1, 2)} {}"),
        ("{topic: t, configs: {retention.ms: 05, a: true}}", "3 2 None {'retention.ms': '05', 'a': 'true'}"),
    ],
)
def test_a_class_receives_a_new_topic_as_in_a_broker(tmp_path: Path, change: str, message: str) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, ECHO) as module:
            cases = cases_of(
                tmp_path, f"- create_topic: {change}\n  expect: refused\n  says: '{message[:4]}'"
            )
            [outcome] = await outcomes(PolicySettings(module.named("Echo")), cases)
            assert outcome.why == message
            assert outcome.is_as_expected(cases[0])

    scenario()


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("topic: t", "TOPIC t"),
        ("broker: '1'", "BROKER 1"),
        ("group: g", "GROUP g"),
        ("client_metrics: m", "CLIENT_METRICS m"),
    ],
)
def test_a_class_receives_altered_configs_as_in_a_broker(tmp_path: Path, resource: str, message: str) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, ECHO) as module:
            text = (
                f"- alter_config: {{{resource}, configs: {{a: 1, b: null}}, removed: [c]}}\n  expect: refused"
            )
            settings = PolicySettings(alter_config_class=module.named("EchoConfigs"))
            [outcome] = await outcomes(settings, cases_of(tmp_path, text))
            assert outcome == CaseResult(CaseStatus.REFUSED, f"{message} {{'a': '1', 'b': None}}")

    scenario()


def test_a_policy_that_fails_is_never_the_expected_result(tmp_path: Path) -> None:
    @on_loop
    async def scenario() -> None:
        with policy_module(tmp_path, ECHO) as module:
            cases = cases_of(tmp_path, "- create_topic: {topic: error}\n  expect: refused")
            [outcome] = await outcomes(PolicySettings(module.named("Echo")), cases)
            assert outcome.result is CaseStatus.FAILED
            assert not outcome.is_as_expected(cases[0])

    scenario()


def test_a_violation_for_another_reason_is_not_the_expected_result() -> None:
    case = Case(1, "", lambda policies: policies.close(), CaseStatus.REFUSED, "too many")
    assert CaseResult(CaseStatus.REFUSED, "there are too many").is_as_expected(case)
    assert not CaseResult(CaseStatus.REFUSED, "bad name").is_as_expected(case)


@pytest.mark.parametrize(
    ("text", "expected_reason"),
    [
        ("a: b", "line 1: the file is a mapping: must be a list"),
        ("- expect: refused", "line 1: [0] is a mapping: must have exactly one of create_topic, "),
        (
            "- delete_topic: {topic: t}",
            "line 1: [0] is a mapping: must have expect: allowed, refused or warned",
        ),
        (
            "- delete_topic: {topic: t}\n  expect: no",
            "line 2: [0].expect is 'no': must be allowed, refused or warned",
        ),
        ("- delete_topic: t\n  expect: refused", "line 1: [0].delete_topic is 't': must be a mapping"),
        ("- create_topic: {}\n  expect: refused", "line 1: [0].create_topic is a mapping: must have topic"),
        (
            "- create_topic: {topic: t, assignments: {a: [1]}}\n  expect: refused",
            "line 1: a key of [0].create_topic.assignments is 'a': must be a partition's number",
        ),
        (
            "- alter_config: {configs: {}}\n  expect: refused",
            "line 1: [0].alter_config is a mapping: must have exactly one of topic, broker, ",
        ),
        (
            "- create_acl: {principal: 'User:a'}\n  expect: refused",
            "line 1: [0].create_acl is a mapping: must have resource_name, operation",
        ),
    ],
)
def test_an_error_in_a_case_file_has_line_key_value_and_valid_values(
    tmp_path: Path, text: str, expected_reason: str
) -> None:
    with pytest.raises(YamlError) as caught:
        cases_of(tmp_path, text)
    assert str(caught.value).startswith(expected_reason)
