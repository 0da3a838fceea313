"""ACLs, users and quotas in the console."""

import re
from html import unescape

from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, visiting


def value_of(text: str, name: str, near: str) -> str:
    """Return the value of the field with that name which contains `near`."""
    for found in re.findall(rf'name="{name}" value="([^"]+)"', text):
        if near in unescape(found):
            return unescape(found)
    raise AssertionError(text)


def test_acls_are_created_filtered_and_deleted(admin: Visitor) -> None:
    made = admin.submit(
        "/acls",
        principal="bob",
        permission="deny",
        operation=["read", "write"],
        resource_type="topic",
        pattern_type="prefixed",
        resource_name="secret.",
        host="10.0.0.1",
    )
    assert "2 ACLs created for User:bob." in made.text
    piece = admin.get("/acls?q=bob", headers={"HX-Request": "true"}).text
    assert (">deny<" in piece, "User:alice" in piece) == (True, False)
    removed = admin.submit("/acls/remove", "/acls", acl=value_of(piece, "acl", "write"))
    assert "1 ACL deleted." in removed.text
    assert "read\tallow" not in admin.get("/acls?q=bob").text


def test_a_review_shows_what_decides_and_all_that_is_allowed(admin: Visitor) -> None:
    for permission, name, pattern in (("allow", "orders-", "prefixed"), ("deny", "orders-secret", "literal")):
        admin.submit(
            "/acls",
            principal="fred",
            permission=permission,
            operation="read",
            resource_type="topic",
            pattern_type=pattern,
            resource_name=name,
        )
    assert "/acls/review" in admin.get("/acls").text
    address = "/acls/review?principal=fred&operation=read&type=topic&name="
    allowed = admin.get(f"{address}orders-2026").text
    assert ">allowed<" in allowed
    assert "an ACL allows it, and none forbids it." in allowed
    denied = admin.get(f"{address}orders-secret").text
    assert ">denied<" in denied
    assert "an ACL forbids it, which takes precedence." in denied
    assert "make no difference" in denied
    assert "read orders-secret" in denied
    own = admin.get("/acls/review?principal=nobody").text
    assert "No ACL allows User:nobody anything." in own
    assert admin.get("/acls/review?principal=fred&operation=fly&type=topic&name=t").status_code == 400


def test_an_invalid_acl_is_explained(admin: Visitor) -> None:
    assert "Choose at least one operation." in admin.submit("/acls", principal="bob", resource_name="t").text
    refused = admin.submit("/acls", principal="*", operation="write", resource_name="t")
    assert (refused.status_code, "writers have names" in refused.text) == (400, True)
    assert admin.submit("/acls/remove", "/acls", acl="nonsense").status_code == 400
    assert "No ACL was selected." in admin.submit("/acls/remove", "/acls").text


def test_a_cluster_without_an_authorizer_is_reported(kafka: EmbeddedBroker) -> None:
    with visiting(kafka.bootstrap) as person:
        assert "This cluster has no authorizer" in person.get("/acls").text
        page = person.get("/acls/review?principal=x").text
        assert "This cluster has no authorizer" in page
        assert "act as <strong>User:ANONYMOUS</strong>" in page


def test_a_created_user_can_log_in_and_a_removed_one_cannot(admin: Visitor, cluster: EmbeddedBroker) -> None:
    fields = {"user": "erin", "password": "erin-secret", "again": "erin-secret", "mechanism": "SCRAM-SHA-256"}
    made = admin.submit("/users", **fields)
    assert "erin can log in by SCRAM-SHA-256" in made.text
    assert "erin-secret" not in made.text
    with visiting(cluster.bootstrap) as person:
        assert "erin" in person.log_in("erin", "erin-secret", "SCRAM-SHA-256").text
    admin.submit("/users/remove", "/users", user="erin", mechanism="SCRAM-SHA-256")
    assert "erin" not in cluster.client.admin.describe_user_scram_credentials()


def test_a_password_must_be_long_and_repeated_and_is_never_shown(admin: Visitor) -> None:
    short = admin.submit("/users", user="erin", password="kurz", again="kurz")
    assert ("at least 8 characters" in short.text, "kurz" in short.text) == (True, False)
    other = admin.submit("/users", user="erin", password="erin-secret", again="erin-Secret")
    assert ("The two passwords differ." in other.text, "erin-secret" in other.text) == (True, False)


def test_quotas_are_set_and_removed(admin: Visitor, cluster: EmbeddedBroker) -> None:
    fields = {"user": "bob", "client-id": "*", "key": "producer_byte_rate", "value": "2097152"}
    assert (
        "every client-id, user bob: producer_byte_rate is set to 2.0 MiB/s."
        in admin.submit("/quotas", **fields).text
    )
    entity = (("client-id", None), ("user", "bob"))
    assert cluster.client.admin.describe_client_quotas()[entity] == {"producer_byte_rate": 2_097_152.0}
    text = admin.get("/quotas?q=bob").text
    gone = admin.submit("/quotas/remove", "/quotas", limit=value_of(text, "limit", "bob"))
    assert "is removed." in gone.text
    assert entity not in cluster.client.admin.describe_client_quotas()


def test_an_invalid_quota_is_explained(admin: Visitor) -> None:
    def answer(**fields: str) -> str:
        return admin.submit("/quotas", **fields).text

    assert "Name a user, a client id or an address." in answer(key="producer_byte_rate", value="1")
    assert "quota of ip only" in answer(key="connection_creation_rate", value="1", user="bob")
    assert "is not a number" in answer(key="producer_byte_rate", value="much", user="bob")
    assert "greater than 0" in answer(key="producer_byte_rate", value="-1", user="bob")
    for limit in ("[1]", "[" * 9_000, r'[[["user", "\ud800"]], "producer_byte_rate"]'):
        assert admin.submit("/quotas/remove", "/quotas", limit=limit).status_code == 400


def test_a_text_with_invalid_characters_is_rejected(admin: Visitor) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    form = part % (b"csrf", admin.token("/users").encode()) + part % (b"user", rb"\ud800") + b"--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b; charset=unicode_escape"}
    assert admin.post("/users", content=form, headers=headers).status_code == 400
