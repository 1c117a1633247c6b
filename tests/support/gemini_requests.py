"""Reads requests of generateContent into the neutral form, apart from the gateway's writer, and checks their grammar."""

import base64
import json
import mimetypes
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from gateway.core.message import (
    Audio,
    File,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Prompt,
    Reasoning,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from tests.support.recordings import is_object

Json = dict[str, Any]
_OPEN = frozenset({"args", "response", "properties", "labels", "parametersJsonSchema"})
_OPEN_TOO = frozenset({"responseJsonSchema"})
_SNAKE = re.compile(r"_([a-z])")
_SOUNDS = {"mpeg": "mp3"}
_MODES = {"AUTO": "auto", "VALIDATED": "auto", "NONE": "none", "ANY": "required"}
_SAMPLING = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "candidateCount": "n",
    "responseLogprobs": "logprobs",
    "logprobs": "top_logprobs",
}
_FORM = ("responseMimeType", "responseSchema", "responseJsonSchema")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")


def camel(value: Any, key: str = "") -> Any:
    """Return a request with every name in camel case, as the provider reads both."""
    if isinstance(value, list):
        return [camel(each, key) for each in cast("list[Any]", value)]
    if not is_object(value) or key in _OPEN_TOO:
        return value
    if key in _OPEN:
        return {name: camel(each) if key == "properties" else each for name, each in value.items()}
    names = {name: _SNAKE.sub(lambda m: m.group(1).upper(), name) for name in value}
    return {names[name]: camel(each, names[name]) for name, each in value.items()}


def read(body: Mapping[str, Any]) -> Prompt:
    """Return a request as a prompt whose origin is Gemini; what the neutral form does not know is extra."""
    fields: Json = {k: v for k, v in camel(dict(body)).items() if v is not None}
    messages: list[Message] = []
    system = fields.pop("systemInstruction", None)
    history = _History()
    if system:
        messages.append(Message("system", tuple(history.part(part) for part in system["parts"])))
    for content in fields.pop("contents"):
        messages += history.messages(content)
    config: Json = dict(fields.pop("generationConfig", None) or {})
    choice = _choice(fields)
    drawn = {ours: config.pop(theirs) for theirs, ours in _SAMPLING.items() if theirs in config}
    return Prompt(
        origin="gemini",
        messages=tuple(messages),
        tools=tuple(_tools(fields.pop("tools", None) or [])),
        choice=choice,
        max_tokens=config.pop("maxOutputTokens", None),
        sampling=Sampling(**drawn, stop=tuple(config.pop("stopSequences", ()))),
        format=_format({name: config.pop(name) for name in _FORM if name in config}),
        reasoning=_reasoning(config.pop("thinkingConfig", None)),
        service_tier=fields.pop("serviceTier", ""),
        store=fields.pop("store", None),
        metadata=fields.pop("labels", None),
        extra={**fields, **({"generationConfig": config} if config else {})},
    )


class _History:
    """Reads contents in order: results find their calls by id, else by name and order."""

    def __init__(self) -> None:
        self._open: list[ToolCall] = []
        self._count = 0

    def messages(self, content: Json) -> Iterator[Message]:
        if content.get("role", "user") == "model":
            self._open = []
            yield Message("assistant", tuple(self.part(part) for part in content["parts"]))
            return
        results = [part for part in content["parts"] if "functionResponse" in part]
        others = [part for part in content["parts"] if "functionResponse" not in part]
        if results:
            yield Message("tool", tuple(self._result(part["functionResponse"]) for part in results))
        if others:
            yield Message("user", tuple(self.part(part) for part in others))

    def part(self, part: Json) -> Part:
        seal = part.get("thoughtSignature", "")
        maker = "gemini" if seal else ""
        if "text" in part:
            if part.get("thought") or (seal and not part["text"]):
                return Thinking(part["text"], signature=seal, maker=maker)
            return Text(part["text"], signature=seal, maker=maker)
        if "functionCall" in part:
            return self._call(part["functionCall"], seal)
        if "inlineData" in part:
            return _inline(part["inlineData"])
        if "fileData" in part:
            return _by_address(part["fileData"])
        (kind,) = part.keys() - {"thoughtSignature"}
        return Opaque("gemini", kind, part)

    def _call(self, call: Json, seal: str) -> ToolCall:
        self._count += 1
        args: Json = call.get("args") or {}
        read = ToolCall(
            id=call.get("id") or f"call_{self._count}",
            name=call["name"],
            arguments=json.dumps(args, separators=(",", ":"), ensure_ascii=False) if args else "",
            signature=seal,
            maker="gemini" if seal else "",
        )
        self._open.append(read)
        return read

    def _result(self, answer: Json) -> ToolResult:
        call = next(
            each
            for each in self._open
            if each.id == answer.get("id") or ("id" not in answer and each.name == answer["name"])
        )
        self._open.remove(call)
        response: Json = answer["response"]
        is_error = set(response) == {"error"}
        if is_error or set(response) == {"output"}:
            said = response["error" if is_error else "output"]
        else:
            said = json.dumps(response, separators=(",", ":"), ensure_ascii=False)
        parts: list[Part] = [Text(said)]
        parts += (self.part(part) for part in answer.get("parts", ()))
        return ToolResult(call.id, tuple(parts), is_error=is_error, name=call.name)


def _inline(data: Json) -> Part:
    media_type: str = data["mimeType"]
    family, _, kind = media_type.partition("/")
    if family == "image":
        return Image(media_type=data["mimeType"], data=data["data"])
    if family == "audio":
        return Audio(data=data["data"], format=_SOUNDS.get(kind, kind))
    if data["mimeType"] == "text/plain":
        return File(media_type="text/plain", text=base64.b64decode(data["data"]).decode())
    return File(media_type=data["mimeType"], data=data["data"])


def _by_address(data: Json) -> Part:
    url, kind = data["fileUri"], data.get("mimeType", "")
    known = "" if kind == mimetypes.guess_type(url)[0] else kind
    return Image(known, url=url) if kind.startswith("image/") else File(known, url=url)


def _tools(listed: list[Json]) -> Iterator[Tool | ServerTool]:
    for entry in listed:
        for name, value in entry.items():
            if name != "functionDeclarations":
                yield ServerTool("gemini", name, {name: value})
                continue
            for declared in value:
                schema = declared.get("parametersJsonSchema")
                if schema is None and "parameters" in declared:
                    schema = lowered(declared["parameters"])
                yield Tool(declared["name"], declared.get("description", ""), schema)


def lowered(schema: Any) -> Any:
    """Return a schema in the small form as JSON Schema."""
    if not is_object(schema):
        return schema
    found: Json = {}
    for name, value in schema.items():
        if name == "type":
            found[name] = value.lower()
        elif name == "properties":
            found[name] = {key: lowered(each) for key, each in value.items()}
        elif name == "items":
            found[name] = lowered(value)
        elif name != "nullable":
            found[name] = value
    if schema.get("nullable"):
        found["type"] = [found["type"], "null"]
    return found


def _choice(fields: Json) -> ToolChoice | None:
    tool_config: Json = dict(fields.pop("toolConfig", None) or {})
    calling = tool_config.pop("functionCallingConfig", None)
    if tool_config:
        fields["toolConfig"] = tool_config
    if not calling:
        return None
    others = {k: v for k, v in calling.items() if k not in {"mode", "allowedFunctionNames"}}
    if others:
        fields.setdefault("toolConfig", {})["functionCallingConfig"] = others
    names = tuple(calling.get("allowedFunctionNames", ()))
    mode: Any = _MODES[calling["mode"].upper()]
    if mode == "required" and len(names) == 1:
        mode = "named"
    return ToolChoice(mode, names)


def _format(form: Json) -> Format | None:
    if form.get("responseMimeType") != "application/json":
        return None
    schema = form.get("responseJsonSchema") or lowered(form.get("responseSchema"))
    return Format("schema", schema=schema) if schema else Format("json")


def _reasoning(config: Json | None) -> Reasoning | None:
    if not config:
        return None
    thoughts = "" if config.get("includeThoughts") else "none"
    if "thinkingLevel" in config:
        return Reasoning(effort=config["thinkingLevel"].lower(), summary=thoughts)
    budget = config.get("thinkingBudget")
    if budget == 0:
        return Reasoning(enabled=False)
    return Reasoning(enabled=True, budget=budget, summary=thoughts)


def complaints(body: Mapping[str, Any]) -> list[str]:
    """Return what a strict provider would refuse in a request (K33); nothing in a good one."""
    contents: list[Json] = body.get("contents", [])
    found = [*_about_history(contents), *_about_tools(body.get("tools", []))]
    if not contents or contents[-1].get("role") != "user":
        found.append("the last word is not the user's")
    config: Json = body.get("generationConfig", {})
    if len(config.get("stopSequences", ())) > 5:
        found.append("more than five stop sequences")
    if {"thinkingBudget", "thinkingLevel"} <= config.get("thinkingConfig", {}).keys():
        found.append("both a budget and a level of thinking")
    return found


def _about_history(contents: list[Json]) -> Iterator[str]:
    calls: list[str] = []
    before = ""
    for at, content in enumerate(contents):
        place, role = f"contents[{at}]", content.get("role")
        parts: list[Json] = content.get("parts", [])
        if role not in {"user", "model"} or not parts:
            yield f"{place}: role {role}, {len(parts)} parts"
        for part in parts:
            yield from (f"{place}: {each}" for each in _about_part(part))
        results = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        if results and (len(results) != len(parts) or role != "user"):
            yield f"{place}: results beside other parts"
        if results != calls:
            yield f"{place}: results {results} for calls {calls}"
        calls = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        if calls and before != "user":
            yield f"{place}: calls do not follow the user"
        before = str(role)


def _about_part(part: Json) -> Iterator[str]:
    kinds = part.keys() - {"thought", "thoughtSignature"}
    if len(kinds) != 1:
        yield f"{len(kinds)} kinds of data in a part"
    if "text" in part and not part["text"].strip() and "thoughtSignature" not in part:
        yield "an empty text"
    if "functionCall" in part and not isinstance(part["functionCall"].get("args"), dict):
        yield "arguments that are no object"
    answer = part.get("functionResponse")
    if answer is not None and not isinstance(answer.get("response"), dict):
        yield "a result that is no object"


def _about_tools(tools: list[Json]) -> Iterator[str]:
    for tool in tools:
        declared: list[Json] = tool.get("functionDeclarations", [])
        for each in declared:
            if not _NAME.match(each["name"]):
                yield f"tool name {each['name']!r}"
            if "parameters" in each:
                yield from about_schema(each["parameters"], each["name"])


_SMALL = frozenset(
    {
        "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength", "maxProperties",
        "maximum", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties",
        "propertyOrdering", "required", "title", "type",
    }
)  # fmt: skip


def about_schema(schema: Json, place: str) -> Iterator[str]:
    """Yield what the small form of schemas does not take."""
    for name in schema.keys() - _SMALL:
        yield f"{place}: keyword {name}"
    if not isinstance(schema.get("type"), str) or schema["type"] != schema["type"].upper():
        yield f"{place}: type {schema.get('type')}"
    if any(not isinstance(each, str) for each in schema.get("enum", ())):
        yield f"{place}: an enum of no texts"
    if schema.get("type") == "ARRAY" and "items" not in schema:
        yield f"{place}: a list of nothing"
    properties: Json = schema.get("properties", {})
    for name, each in properties.items():
        yield from about_schema(each, f"{place}.{name}")
    if "items" in schema:
        yield from about_schema(schema["items"], f"{place}[]")
