"""Create a topic; errors of the cluster or a policy appear beside the field that they are about."""

from collections.abc import Mapping

from starlette.responses import Response

from barnabas.client.admin.model import BROKER_DEFAULT, NewTopic
from barnabas.console.forms import Form, too_long
from barnabas.console.page import Route
from barnabas.console.problems import sentence
from barnabas.console.view import View, segment
from barnabas.console.wait_visible import wait_until_visible
from barnabas.declared.state import ClusterState, TopicState
from barnabas.wire.errors import ErrorCode, KafkaError

#: Configs with a field of their own.
CONFIGS = ("cleanup.policy", "retention.ms", "retention.bytes", "min.insync.replicas", "max.message.bytes")
_FIELDS = ("name", "partitions", "replicas", "configs", *CONFIGS)
_PARTITIONS_MAX = 100_000
_REPLICAS_MAX = 32_767
#: The field of each error; other errors, such as a policy's, appear at the top.
_FIELD_BY_ERROR: Mapping[ErrorCode, str] = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "name",
    ErrorCode.TOPIC_ALREADY_EXISTS: "name",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "name",
    ErrorCode.INVALID_PARTITIONS: "partitions",
    ErrorCode.INVALID_REPLICATION_FACTOR: "replicas",
    ErrorCode.INVALID_CONFIG: "configs",
}


async def ask(view: View) -> Response:
    """Show the form."""
    return await view.page("new_topic.html", values={}, errors={}, checked=False, configs=CONFIGS)


async def create(view: View) -> Response:
    """Create the topic, or only validate it."""
    form = await view.form("configs")
    topic = new_topic(form)
    checking = form.flag("check")
    if not form.errors:
        outcome = (await view.admin.create_topics([topic], validate_only=checking))[topic.name]
        if isinstance(outcome, KafkaError):
            _set_errors(form, outcome)
        elif not checking:
            await wait_until_visible(
                view.admin,
                ClusterState({topic.name: TopicState()}),
                lambda live: topic.name in live.topics,
            )
            view.access.topics.clear()
            return view.redirect_with_notice(
                f"/topics/{segment(topic.name)}", f"Topic {topic.name} is created."
            )
    values = {name: form.raw(name) for name in _FIELDS}
    status = 400 if form.errors else 200
    return await view.page(
        "new_topic.html",
        status=status,
        values=values,
        errors=form.errors,
        checked=not form.errors,
        configs=CONFIGS,
    )


def new_topic(form: Form) -> NewTopic:
    """The topic that a form describes."""
    configs: dict[str, str | None] = {key: form.text(key) for key in CONFIGS if form.text(key)}
    for line in form.raw("configs").splitlines():
        key, equals, value = line.partition("=")
        if not line.strip():
            continue
        if not equals or not key.strip():
            form.refuse("configs", f"'{line[:60]}' is not a config: write each as 'key=value'.")
            break
        if why := too_long(line):
            form.refuse("configs", f"'{line[:60]} ...': {why}")
            break
        configs[key.strip()] = value.strip()
    partitions = form.whole("partitions", minimum=1, maximum=_PARTITIONS_MAX, default=BROKER_DEFAULT)
    replicas = form.whole("replicas", minimum=1, maximum=_REPLICAS_MAX, default=BROKER_DEFAULT)
    return NewTopic(
        form.needed("name"),
        BROKER_DEFAULT if partitions is None else partitions,
        BROKER_DEFAULT if replicas is None else replicas,
        configs,
    )


def _set_errors(form: Form, error: KafkaError) -> None:
    """Put an error beside its field, else at the top."""
    tp = _FIELD_BY_ERROR.get(error.code, "")
    if tp == "configs":
        tp = next((key for key in CONFIGS if form.text(key) and key in error.message), tp)
    form.refuse(tp, sentence(error))


ROUTES = (Route("/new-topic", ask), Route("/new-topic", create, "POST"))
