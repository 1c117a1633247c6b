"""The subjects by name, in the order of the tables."""

from __future__ import annotations

from typing import Final

from benchmarks.subjects.base import Subject
from benchmarks.subjects.direct import Direct
from benchmarks.subjects.gateway import Cached, CachedOnRedis, Chained, Gateway, Translated
from benchmarks.subjects.litellm import LiteLLM
from benchmarks.subjects.nginx import Nginx
from benchmarks.subjects.portkey import Portkey
from benchmarks.subjects.rolter import Rolter

SUBJECTS: Final[dict[str, Subject]] = {
    subject.name: subject
    for subject in (
        Nginx(),
        Direct(),
        Gateway(),
        Chained(),
        Translated(),
        Cached(),
        CachedOnRedis(),
        Rolter(),
        Portkey(),
        LiteLLM(),
    )
}
OURS: Final = "gateway"
REFERENCE: Final = "nginx"
BASE_LINE: Final = "direct"
PEERS: Final = ("rolter", "portkey", "litellm")
CHAINED: Final = "chained"
TRANSLATED: Final = "translated"
CACHED: Final = ("cached", "cached_redis")
DEFAULT: Final = (REFERENCE, BASE_LINE, OURS, CHAINED, TRANSLATED, *CACHED)
QUICK: Final = (REFERENCE, OURS)
