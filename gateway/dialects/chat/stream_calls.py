"""Puts fragments of tool calls in their places, by identity: index, id and name (K03)."""

from collections.abc import Sequence
from typing import Any

from gateway.core import codec
from gateway.dialects.chat.answers_in import text_in, unusable, words_in
from gateway.dialects.chat.seal import seal_of


class Call:
    """One call of a stream. `at` is its place among the parts, -1 until its name is known."""

    __slots__ = ("at", "custom", "ended", "id", "name", "pieces", "seal")

    def __init__(self, known: str) -> None:
        self.at = -1
        self.id = known
        self.name = ""
        self.custom = False
        self.ended = False
        self.pieces: list[str] = []
        self.seal: tuple[str, str] = ("", "")

    def is_whole(self) -> bool:
        """Tell whether the words so far are a complete JSON object: nothing can follow them."""
        if self.custom or not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return codec.as_object(codec.decode("".join(self.pieces))) is not None
        except (codec.JSONError, RecursionError):
            return False


class Fragment:
    """What one fragment says."""

    __slots__ = ("custom", "id", "index", "name", "seal", "words")

    def __init__(self, item: dict[str, Any]) -> None:
        index = item.get("index")
        self.index = index if isinstance(index, int) and not isinstance(index, bool) else None
        self.id = text_in(item, "id")
        custom = codec.as_object(item.get("custom"))
        inner = custom or codec.as_object(item.get("function")) or {}
        self.custom = custom is not None
        self.name = text_in(inner, "name")
        self.words = words_in(inner, "arguments" if custom is None else "input")
        self.seal = seal_of(item["extra_content"]) if "extra_content" in item else ("", "")


class Calls:
    """The calls of one choice, in the order in which they were opened."""

    __slots__ = ("_by_id", "_by_index", "opened")

    def __init__(self) -> None:
        self.opened: list[Call] = []
        self._by_id: dict[str, Call] = {}
        self._by_index: dict[int, Call] = {}

    def place(self, said: Fragment) -> Call | None:
        """Return the call that a fragment belongs to, a new one where it opens one; None for one that says nothing.

        A new id, a new name or a missing index opens a call. Raises UpstreamError `upstream_invalid_response` for
        words that belong to no call.
        """
        call = self._known(said)
        if call is None:
            if not (said.id or said.name):
                if said.words.strip():
                    raise unusable("a piece of a tool call belongs to no call", "body")
                return None
            call = Call(said.id)
            self.opened.append(call)
        if said.id:
            self._by_id[said.id] = call
        if said.index is not None:
            self._by_index[said.index] = call
        return call

    def _known(self, said: Fragment) -> Call | None:
        at_index = None if said.index is None else self._by_index.get(said.index)
        call = self._by_id.get(said.id) if said.id else at_index
        if call is None and at_index is not None and not at_index.id:
            call = at_index
        if call is None or not said.name or not call.name:
            return call
        again = said.name == call.name and not (said.words and call.is_whole())
        return call if again else None

    def unnamed(self) -> Sequence[Call]:
        """Return the calls whose name never came."""
        return [call for call in self.opened if not call.name]
