from barnabas.metadata.scram import Credentials, ScramCredential
from barnabas.security.sasl.stand_ins import DEFAULT_SHAPE, StandIns
from barnabas.wire.scram import ScramMechanism

SHA_256, SHA_512 = ScramMechanism
KAFKAS_SALT = b"1mvyj3rb6xjdk6wt2apx8o0tl5"
NAMES = [f"user-{number}" for number in range(50)]


def credentials(salt: bytes, iterations: int, mechanism: ScramMechanism = SHA_256) -> Credentials:
    return {mechanism: ScramCredential(salt, b"", b"", iterations)}


def stand_ins(*users: Credentials, secret: bytes = b"secret") -> StandIns:
    table = {f"real-{number}": each for number, each in enumerate(users)}
    return StandIns(secret, lambda: table)


def shapes(found: StandIns, mechanism: ScramMechanism = SHA_256) -> set[tuple[int, int]]:
    each = [found.of(mechanism, name) for name in NAMES]
    return {(one.iterations, len(one.salt)) for one in each}


def test_a_stand_in_is_stable_and_differs_by_user_mechanism_and_cluster() -> None:
    one = stand_ins().of(SHA_256, "mallory").salt
    assert one == stand_ins().of(SHA_256, "mallory").salt
    others = {
        stand_ins().of(SHA_256, "eve").salt,
        stand_ins().of(SHA_512, "mallory").salt,
        stand_ins(secret=b"another").of(SHA_256, "mallory").salt,
    }
    assert len(others - {one}) == 3


def test_without_users_stand_ins_look_like_barnabass_credentials() -> None:
    assert shapes(stand_ins()) == {DEFAULT_SHAPE}


def test_stand_ins_have_the_iterations_and_salt_lengths_of_their_mechanisms_users() -> None:
    found = stand_ins(
        credentials(bytes(16), 4096), credentials(bytes(70), 8192), credentials(bytes(8), 16384, SHA_512)
    )
    assert shapes(found) == {(4096, 16), (8192, 70)}
    assert shapes(found, SHA_512) == {(16384, 8)}


def test_another_user_with_a_known_shape_changes_no_stand_in() -> None:
    before = stand_ins(credentials(bytes(16), 4096), credentials(bytes(20), 8192))
    after = stand_ins(*[credentials(bytes(20), 8192)] * 3, credentials(bytes(16), 4096))
    assert [before.of(SHA_256, name) for name in NAMES] == [after.of(SHA_256, name) for name in NAMES]


def test_if_salts_come_from_kafkas_tools_stand_ins_have_the_same_form() -> None:
    found = stand_ins(credentials(KAFKAS_SALT, 4096))
    salts = [found.of(SHA_256, name).salt for name in NAMES]
    assert {len(salt) for salt in salts} <= {24, 25, 26}
    assert all(int(salt, 36).bit_length() <= 130 for salt in salts)
    assert all(salt.startswith(b"1") for salt in salts if len(salt) == 26)


def test_stand_ins_follow_the_credentials_of_the_cluster() -> None:
    tables = [{"alice": credentials(bytes(16), 4096)}, {"alice": credentials(bytes(16), 8192)}]
    found = StandIns(b"secret", lambda: tables[0])
    assert found.of(SHA_256, "mallory").iterations == 4096
    del tables[0]
    assert found.of(SHA_256, "mallory").iterations == 8192
