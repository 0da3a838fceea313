"""An authorization server on loopback, and the tokens that it issues."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, AUDIENCE = "https://issuer.example", "kafka"
CLIENT_ID, CLIENT_SECRET = "orders-app", "client-secret"


class Signer:
    """A key pair that signs tokens."""

    def __init__(self, key_id: str = "one", algorithm: str = "RS256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self._key: Any = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm.startswith("ES")
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )

    @property
    def public_entry(self) -> dict[str, Any]:
        """Return the public key as in a JSON Web Key Set."""
        algorithms = jwt.algorithms
        kind: Any = algorithms.ECAlgorithm if self.algorithm.startswith("ES") else algorithms.RSAAlgorithm
        return {**json.loads(kind.to_jwk(self._key.public_key())), "kid": self.key_id, "use": "sig"}

    @property
    def public_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem: bytes = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return pem

    def token(self, *, headers: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """Return a token that is valid for an hour; None removes a claim."""
        now_s = time.time()
        standard = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 3_600}
        chosen = {name: value for name, value in {**standard, **claims}.items() if value is not None}
        own = {"kid": self.key_id} if headers is None else dict(headers)
        return jwt.encode(chosen, self._key, self.algorithm, own)


def key_set(*signers: Signer) -> bytes:
    return json.dumps({"keys": [signer.public_entry for signer in signers]}).encode()


class AuthorizationServer:
    """Has keys at /keys and tokens at /token."""

    def __init__(self) -> None:
        self.signers = [Signer()]
        self.is_down = False  #: has no keys
        self.issues_tokens = True
        self.may_answer = threading.Event()  #: requests for tokens wait for it
        self.may_answer.set()
        self.keys_count = 0  #: requests for the keys
        self.requests_count = 0  #: for tokens
        self.tokens_count = 0
        self.lifetime_s = 3_600.0
        self.expires_s: float | None = None  #: when tokens expire, instead of after their lifetime
        self.scope = ""  #: that was requested last
        self.url = ""

    def respond(self, handler: BaseHTTPRequestHandler, body: bytes, status: int = 200) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def issue(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request for a token."""
        self.requests_count += 1
        self.may_answer.wait()
        if not self.issues_tokens:
            self.respond(handler, b"", 503)
            return
        form = parse_qs(handler.rfile.read(int(handler.headers["Content-Length"])).decode())
        self.scope = form.get("scope", [""])[0]
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if handler.path == "/empty":
            self.respond(handler, b"{}")
            return
        if handler.headers["Authorization"] != f"Basic {expected}":
            self.respond(handler, b'{"error":"invalid_client"}', 401)
            return
        self.tokens_count += 1
        expires_s = time.time() + self.lifetime_s if self.expires_s is None else self.expires_s
        token = self.signers[-1].token(sub=CLIENT_ID, scope=self.scope, exp=expires_s)
        self.respond(handler, json.dumps({"access_token": token, "token_type": "Bearer"}).encode())


@contextmanager
def authorization_server() -> Iterator[AuthorizationServer]:
    state = AuthorizationServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.keys_count += 1
            if state.is_down:
                state.respond(self, b"", 503)
            else:
                state.respond(self, key_set(*state.signers))

        def do_POST(self) -> None:
            state.issue(self)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        state.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
