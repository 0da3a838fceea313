"""The layout of every page of the console, and the checks of every request."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import Request
from starlette.responses import Response

from barnabas.base.clock import ManualClock
from barnabas.client.auth.sasl import SaslLogin
from barnabas.console.app import Console
from barnabas.console.page import Route
from barnabas.console.request_guard import CONTENT_SECURITY_POLICY
from barnabas.console.settings import ConsoleSettings
from barnabas.console.view import View
from barnabas.testing import EmbeddedBroker
from support.consoles import running_console, token_in, visiting, visitor

USERS = {"alice": "secret", "bob": "other"}
_MINUTE_MS = 60_000


def test_the_overview_names_the_brokers(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        page = person.get("/")
    assert page.status_code == 200
    assert kafka.bootstrap in page.text


def test_every_response_forbids_foreign_code(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        answers = [person.get(path) for path in ("/", "/nothing", "/static/console.css")]
    assert {answer.headers["Content-Security-Policy"] for answer in answers} == {CONTENT_SECURITY_POLICY}
    assert {answer.headers["X-Content-Type-Options"] for answer in answers} == {"nosniff"}
    assert answers[0].headers["Cache-Control"] == "no-store"


def test_a_cluster_without_logins_shows_the_users_principal(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        page = person.get("/")
        assert "requires no login" in page.text
        assert "User:ANONYMOUS" in page.text
        assert person.get("/login").url.path == "/"


def test_an_unknown_path_has_a_page_of_its_own(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        page = person.get("/nothing")
        piece = person.get("/nothing", headers={"HX-Request": "true"})
    assert page.status_code == 404
    assert "Not found" in page.text
    assert 'aria-label="Pages"' in page.text
    assert piece.status_code == 404
    assert "<html" not in piece.text


def test_a_form_without_the_sessions_token_is_rejected(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person, visiting(kafka.bootstrap) as other:
        person.get("/")
        assert person.post("/theme", data={"theme": "dark"}).status_code == 403
        assert person.post("/theme", data={"theme": "dark", "csrf": other.token()}).status_code == 403
        assert 'data-theme="auto"' in person.get("/").text
        assert person.submit("/theme", "/", theme="dark").status_code == 200
        assert 'data-theme="dark"' in person.get("/").text


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_a_form_from_another_site_is_rejected(kafka: EmbeddedBroker, origin: str) -> None:
    with visiting(kafka.bootstrap) as person:
        token = person.token()
        answer = person.post("/theme", data={"theme": "dark", "csrf": token}, headers={"Origin": origin})
        assert answer.status_code == 403
        answer = person.post(
            "/theme", data={"theme": "dark", "csrf": token}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert answer.status_code == 403


def test_unknown_host_names_are_rejected(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert person.get("/", headers={"Host": "evil.example"}).status_code == 421
        assert person.get("/", headers={"Host": "localhost:1"}).status_code == 200
    with visiting(kafka.bootstrap, hosts=("kafka.example",)) as person:
        assert person.get("/", headers={"Host": "kafka.example"}).status_code == 200


def test_oversized_bodies_are_rejected_with_and_without_a_length(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap, body_max_bytes=1000) as person:
        token = person.token()
        form = f"csrf={token}&theme=dark&x={'y' * 2000}".encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": token}
        assert person.post("/theme", content=form, headers=headers).status_code == 413
        assert person.post("/theme", content=iter([form]), headers=headers).status_code == 413


def test_urlencoded_forms_have_a_lower_limit_than_multipart_forms(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        token = person.token()
        data = {"csrf": token, "theme": "dark", "x": "y" * 2_000_000}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "X-CSRF-Token": token}
        escaped = b"csrf=x&theme=dark&x=" + b"%41" * 700_000
        assert person.post("/theme", data=data).status_code == 413
        assert person.post("/theme", content=escaped, headers=headers).status_code == 413
        assert person.post("/theme", content=iter([escaped]), headers=headers).status_code == 413
        sent = person.post("/plan", data={"csrf": token, "text": "x" * 2_000_000}, files={"file": b""})
        assert "at most" in sent.text


@pytest.mark.kafka_users(USERS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_of_the_cluster_can_log_in(kafka: EmbeddedBroker, mechanism: str) -> None:
    with visiting(kafka.bootstrap) as person:
        assert person.get("/?x=1").url.path == "/login"
        page = person.log_in("alice", "secret", mechanism)
        assert page.url.path == "/"
        assert "User:alice" in page.text
        [cookie] = person.cookies.jar
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "strict"
        person.submit("/logout", "/")
        assert person.get("/").url.path == "/login"


@pytest.mark.kafka_users(USERS)
def test_wrong_passwords_are_reported_and_eventually_throttled(kafka: EmbeddedBroker) -> None:
    clock = ManualClock()
    with visiting(kafka.bootstrap, clock) as person:
        answers = [person.log_in("alice", "wrong") for _ in range(6)]
        assert [answer.status_code for answer in answers] == [401] * 6
        assert "SASL_AUTHENTICATION_FAILED" in answers[0].text
        assert "Too many failed attempts" in answers[5].text
        assert "Too many failed attempts" in person.log_in("alice", "secret").text
        clock.advance(_MINUTE_MS)
        assert person.log_in("alice", "secret").url.path == "/"


def from_address(address: str) -> dict[str, str]:
    """Return the header with which a proxy names the client's address."""
    return {"X-Forwarded-For": address}


@pytest.mark.kafka_users(USERS)
def test_client_addresses_are_accepted_from_configured_proxies_only(kafka: EmbeddedBroker) -> None:
    """Made-up addresses must not circumvent the limit of failed logins from one address."""

    def is_throttled(*, trusted: tuple[str, ...]) -> bool:
        with visiting(kafka.bootstrap, ManualClock(), trusted_proxies=trusted) as person:
            for number in range(21):
                person.headers.update(from_address(f"10.0.0.{number}"))
                page = person.log_in(f"user-{number}", "wrong")
            return "Too many failed attempts" in page.text

    assert is_throttled(trusted=())
    assert is_throttled(trusted=("10.9.9.9",))
    assert not is_throttled(trusted=("127.0.0.0/8",))


@pytest.mark.kafka_users(USERS)
def test_concurrent_logins_count_as_separate_attempts(kafka: EmbeddedBroker) -> None:
    with (
        running_console(kafka.bootstrap, ManualClock()) as server,
        visitor(server) as person,
        ThreadPoolExecutor(20) as pool,
    ):
        texts = list(pool.map(lambda number: person.log_in("alice", f"wrong {number}").text, range(20)))
    assert sum("SASL_AUTHENTICATION_FAILED" in text for text in texts) == 5
    assert sum("Too many failed attempts" in text for text in texts) == 15


@pytest.mark.kafka_users(USERS)
def test_logging_in_as_another_user_ends_the_old_session(kafka: EmbeddedBroker) -> None:
    with running_console(kafka.bootstrap) as server, visitor(server) as person, visitor(server) as other:
        person.log_in("alice", "secret")
        other.cookies = dict(person.cookies)  # type: ignore[assignment]
        assert "User:alice" in other.get("/").text
        person.post("/login", data={"csrf": person.token(), "user": "bob", "password": "other"})
        assert "User:bob" in person.get("/").text
        assert other.get("/").url.path == "/login"


@pytest.mark.kafka_users(USERS)
def test_requests_before_the_login_have_a_low_size_limit(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        large = {"user": "alice", "password": "x" * 100_000}
        assert person.post("/login", data=large).status_code == 413
        assert person.post("/login", content=iter([b"user=alice"])).status_code == 413
        assert "at most 1000 characters" in person.log_in("a" * 1_001, "secret").text
        person.log_in("alice", "secret")
        assert person.submit("/theme", "/", theme="dark", more=["x" * 30_000] * 4).status_code == 200


@pytest.mark.kafka_users(USERS)
def test_a_page_that_outlives_its_session_leaves_no_connection_open(kafka: EmbeddedBroker) -> None:
    async def run() -> None:
        console = Console(ConsoleSettings(kafka.bootstrap), ManualClock())
        session = await console.log_in(SaslLogin("PLAIN", "alice", "secret"))

        async def outlast(view: View) -> Response:
            console.end(session)
            await asyncio.sleep(0)
            await view.access.view()
            return Response()

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "server": ("127.0.0.1", 80),
        }
        headers = [(b"cookie", f"barnabas-session-80={session.key}".encode()), (b"host", b"127.0.0.1:80")]
        await console.serve(Route("/", outlast), Request({**scope, "headers": headers}))
        await console.close()
        assert vars(session.access.cluster)["_connections"] == {}

    asyncio.run(run())


@pytest.mark.kafka_users(USERS)
def test_sessions_end_when_idle_and_after_half_a_day(kafka: EmbeddedBroker) -> None:
    clock = ManualClock()
    with visiting(kafka.bootstrap, clock) as person:
        person.log_in("alice", "secret")
        clock.advance(29 * _MINUTE_MS)
        assert person.get("/").url.path == "/"
        clock.advance(30 * _MINUTE_MS)
        assert person.get("/").url.path == "/login"
        person.log_in("alice", "secret")
        for _ in range(25):
            clock.advance(29 * _MINUTE_MS)
            person.get("/")
        assert person.get("/").url.path == "/login"


@pytest.mark.kafka_users(USERS)
def test_two_sessions_have_their_own_principals(kafka: EmbeddedBroker) -> None:
    with running_console(kafka.bootstrap) as server, visitor(server) as alice, visitor(server) as bob:
        alice.log_in("alice", "secret")
        bob.log_in("bob", "other")
        assert "User:alice" in alice.get("/").text
        assert "User:bob" in bob.get("/").text
        stolen = bob.post("/theme", data={"theme": "dark", "csrf": token_in(alice.get("/").text)})
        assert stolen.status_code == 403


@pytest.mark.kafka_users(USERS)
@pytest.mark.parametrize("whither", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_a_login_does_not_redirect_to_other_sites(kafka: EmbeddedBroker, whither: str) -> None:
    with visiting(kafka.bootstrap) as person:
        page = person.post("/login", data={"user": "alice", "password": "secret", "next": whither})
        assert page.url.path == "/"
        assert page.url.host == "127.0.0.1"


@pytest.mark.kafka_users(USERS)
def test_fragments_of_an_expired_session_lead_to_the_login(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        answer = person.get("/", headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/login"


def test_an_unreachable_cluster_is_an_error_page_with_a_hint(kafka: EmbeddedBroker) -> None:
    with visiting("127.0.0.1:1", connect_timeout_ms=300, retry_timeout_ms=300) as person:
        page = person.get("/")
    assert page.status_code == 502
    assert "Check that the brokers are running" in page.text
    assert "127.0.0.1:1" in page.text


def test_sessions_survive_a_cluster_that_goes_down(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap, ManualClock(), connect_timeout_ms=300, retry_timeout_ms=0) as person:
        key = person.get("/").cookies
        kafka.restart(kill=True)
        assert person.get("/nothing").status_code == 404
        assert person.get("/").status_code == 200
        assert not person.get("/").cookies
        assert key
