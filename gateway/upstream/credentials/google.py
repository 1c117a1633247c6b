"""Tokens of Google's clouds: of a credentials file, or of the machine the gateway runs on.

Files are read through google-auth (the extra `vertex`); its requests go over the gateway's own pools.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from gateway.core import clock, codec
from gateway.core.errors import UpstreamError
from gateway.upstream.credentials.thread_request import Connect, ThreadRequest
from gateway.upstream.credentials.tokens import Fetch, Token, TokenSigner
from gateway.upstream.spec import EndpointSpec, Headers

METADATA = "http://169.254.169.254"
"""Where every machine of this cloud finds its own credential; asked by address, so that no name leads there."""
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105  an address
_FLAVOR = "metadata-flavor"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_OWN = ".googleapis.com"
_GCLOUD = Path(".config/gcloud/application_default_credentials.json")
_MOST_FILE_BYTES = 65_536
_CONNECTIONS = 4
_WORD = re.compile(r"[a-z_]{1,40}\Z")
_OK, _ABSENT = 200, 404
_REFUSED = frozenset({400, 401, 403})
_NO_CREDENTIAL = "The gateway has no credential that this provider takes."
_SET = "set `credentials_file` of the provider to the JSON file of a service account"
_LOGIN = "log in with `gcloud auth application-default login`"
_CURES = {
    "service_account": "its key was deleted, its account disabled, or the clock of this machine is wrong: put a "
    "new key of the service account into the file",
    "authorized_user": f"its login was revoked or has expired: {_LOGIN} again",
    "external_account": "the token that it exchanges has expired, or its pool does not take it: see to that token, "
    "and to `audience` in the file",
    "impersonated_service_account": "its account may not act as that service account: give it the role Service "
    "Account Token Creator",
}
"""Why Google may refuse a file of each type, and what to do about it."""


class _Credentials(Protocol):
    """What is used of google-auth's credentials."""

    token: str | None
    expiry: Any

    def refresh(self, request: Callable[..., Any]) -> None: ...


_Make = Callable[..., _Credentials]
_TYPES = {
    "service_account": ("google.oauth2.service_account", "from_service_account_info"),
    "authorized_user": ("google.oauth2.credentials", "from_authorized_user_info"),
    "external_account": ("google.auth.identity_pool", "from_info"),
    "impersonated_service_account": (
        "google.auth.impersonated_credentials",
        "from_impersonated_service_account_info",
    ),
}
"""Types of files, and what reads each."""


def google_signer(
    file: str | None,
    connect: Connect,
    like: EndpointSpec,
    *,
    allowed: frozenset[str] = frozenset(),
    metadata: str = METADATA,
    home: Path | None = None,
) -> TokenSigner:
    """Return the signer of a credentials file; without one, of the user of this machine or of the machine itself.

    `home` is the folder of the user whose login with gcloud may be used, None for nobody's. Tokens are asked for
    at https addresses of Google alone, at the origin of the provider `like`, and at those of `allowed`.
    Raises ValueError for a file that cannot be used, or when google-auth is not installed.
    """
    path = Path(file) if file else _own_file(home)
    reach = _Reach(like, allowed)
    if path is None:
        return TokenSigner(_of_machine(connect, metadata))
    _load(path)
    return TokenSigner(_of_file(path, connect, reach))


def project_of(file: str | None, home: Path | None = None) -> str:
    """Return the project that a credentials file names, or ""; raises ValueError for one that cannot be read."""
    path = Path(file) if file else _own_file(home)
    project = _read(path).get("project_id") if path is not None else None
    return project if isinstance(project, str) else ""


def _own_file(home: Path | None) -> Path | None:
    """Return where gcloud keeps the credential of the user with this home, if there is one."""
    path = home / _GCLOUD if home is not None else None
    return path if path is not None and path.is_file() else None


class _Reach:
    """Which origins a credential may ask, and how."""

    def __init__(self, like: EndpointSpec, allowed: frozenset[str]) -> None:
        base = urlsplit(like.base_url)
        self._like = like
        self._allowed = allowed | {f"{base.scheme}://{base.netloc}"}

    def spec(self, origin: str) -> EndpointSpec | None:
        url = urlsplit(origin)
        is_own = url.scheme == "https" and (url.hostname or "").endswith(_OWN) and "@" not in origin
        if not is_own and origin not in self._allowed:
            return None
        like = self._like
        return EndpointSpec(
            base_url=origin,
            timeouts=like.timeouts,
            max_connections=_CONNECTIONS,
            ca_file=like.ca_file,
            transport="httpx" if like.proxy else "fast",
            proxy=like.proxy,
        )


def _of_file(path: Path, connect: Connect, reach: _Reach) -> Fetch:
    def fetch(loop: asyncio.AbstractEventLoop, deadline: float) -> Token:
        from google.auth import exceptions

        request = ThreadRequest(loop, deadline, connect, reach.spec)
        try:
            # Read anew, so that a file that was replaced counts without a reload.
            credentials, beside, kind = _load(path)
        except ValueError as unusable:
            raise _failed("upstream_auth", str(unusable)) from None
        try:
            credentials.refresh(request)
        except exceptions.GoogleAuthError as refused:
            raise _failed("upstream_auth", _refusal(path, kind, _word_of(refused))) from None
        except ValueError as unusable:
            raise _failed("upstream_auth", _unusable(path, type(unusable).__name__)) from None
        if not credentials.token:
            raise _failed("upstream_auth", _refusal(path, kind, "no token came"))
        return Token(credentials.token, _ends(credentials.expiry), beside)

    return fetch


def _of_machine(connect: Connect, metadata: str) -> Fetch:
    def fetch(loop: asyncio.AbstractEventLoop, deadline: float) -> Token:
        spec = EndpointSpec(base_url=metadata, max_connections=_CONNECTIONS)
        request = ThreadRequest(loop, deadline, connect, lambda _: spec)
        url = f"{metadata}{_TOKEN}?scopes={_SCOPE}"
        try:
            answer = request(url, headers={_FLAVOR: "Google"})
        except UpstreamError as away:
            reason = away.detail.removeprefix("no token: ")
            why = f"no credentials file is set, and no metadata server answers ({reason})"
            raise _failed(away.code, f"{why}: {_SET}, or {_LOGIN}") from None
        if answer.status != _OK or answer.headers.get(_FLAVOR) != "Google":
            raise _no_account(answer.status, is_google=answer.headers.get(_FLAVOR) == "Google")
        try:
            told = codec.as_object(codec.decode(answer.data)) or {}
        except codec.JSONError:
            told = {}
        text, lasts_s = told.get("access_token"), told.get("expires_in")
        if not isinstance(text, str) or not text or not isinstance(lasts_s, int | float):
            raise _failed("upstream_auth", f"the metadata server gave no token; {_SET}")
        return Token(text, clock.monotonic() + lasts_s)

    return fetch


def _no_account(status: int, *, is_google: bool) -> UpstreamError:
    """Say why this machine has no credential of its own, and what to do."""
    if not is_google:
        why = f"no credentials file is set, and this machine is none of Google's (status {status})"
        return _failed("upstream_auth", f"{why}: {_SET}, or {_LOGIN}")
    if status == _ABSENT:
        why = "this machine has no service account: attach one to it"
    elif status in _REFUSED:
        why = f"the metadata server refuses a token (status {status}): give the machine the scope cloud-platform"
    else:
        return _failed("upstream_unavailable", f"the metadata server fails (status {status})")
    return _failed("upstream_auth", f"{why}, or {_SET}")


def _refusal(path: Path, kind: str, word: str) -> str:
    return f"Google refuses the credential in {path} ({word}): {_CURES[kind]}"


def _load(path: Path) -> tuple[_Credentials, Headers, str]:
    """Return the credential of a file, the headers that go with its tokens, and its type; raises ValueError."""
    info = _read(path)
    kind = str(info.get("type"))
    try:
        make = _maker(kind)
    except ImportError:
        raise ValueError(
            "a Google credentials file needs the package google-auth: install llm-gateway[vertex]"
        ) from None
    if make is None:
        known = ", ".join(_TYPES)
        raise ValueError(
            f"the Google credentials file {path} is of a type that is not known; known are: {known}"
        )
    try:
        _check(info)
        credentials = make(info, scopes=[_SCOPE])
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        # What is in the file must not be told.
        raise ValueError(_unusable(path, type(broken).__name__)) from None
    quota = info.get("quota_project_id")
    beside = ((b"x-goog-user-project", quota.encode()),) if isinstance(quota, str) and quota else ()
    return credentials, beside, kind


def _unusable(path: Path, word: str) -> str:
    return f"the Google credentials file {path} is not usable ({word}): download it anew, and change nothing in it"


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as opened:
            data = opened.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ValueError(
            f"the Google credentials file {path} cannot be read ({error.strerror}): {_SET}"
        ) from None
    try:
        info = codec.as_object(codec.decode(data)) if len(data) <= _MOST_FILE_BYTES else None
    except (codec.JSONError, UnicodeDecodeError, RecursionError):
        info = None
    if info is None:
        raise ValueError(f"the Google credentials file {path} is no JSON object: {_SET}")
    return info


def _maker(kind: str) -> _Make | None:
    """Return what makes a credential of a type of file; raises ImportError without google-auth."""
    if kind not in _TYPES:
        return None
    module, method = _TYPES[kind]
    return cast("_Make", getattr(import_module(module).Credentials, method))


def _check(info: Mapping[str, Any]) -> None:
    """Refuse what would run a program or read the environment to get a token."""
    source = codec.as_object(info.get("credential_source"))
    if source is not None and (not source.keys() & {"file", "url"} or "environment_id" in source):
        raise ValueError("only tokens in files and at addresses are taken")


def _ends(expiry: Any) -> float:  # noqa: ANN401  a date without a zone, of a library without types
    now = clock.monotonic()
    if expiry is None:
        return now
    left = expiry - clock.now().replace(tzinfo=None)
    return now + left.total_seconds()


def _word_of(refused: Exception) -> str:
    """Return the machine's word for a refusal (`invalid_grant`); never its text, which may hold parts of a key."""
    for said in refused.args:
        word = (codec.as_object(said) or {}).get("error")
        if isinstance(word, str) and _WORD.match(word):
            return word
    return type(refused).__name__


def _failed(code: str, detail: str) -> UpstreamError:
    return UpstreamError(code, _NO_CREDENTIAL, phase="credential", sent=False, detail=detail)
