"""What `gateway serve` prints when it is up: where it is, the first key, the models, something to paste."""

from collections.abc import Iterable


def welcome(
    *,
    address: str,
    admin: str,
    key: str | None,
    models: Iterable[str],
    example: str | None,
    notes: Iterable[str],
    can_make: bool,
) -> str:
    """Write the text; `key` is the fresh key, None when there is none to show, `example` a model to try.

    `can_make`: `gateway keys new` can make more of them.
    """
    shown = key or "$GATEWAY_KEY"
    lines = [
        "",
        f"llm-gateway is ready at {address}",
        f"  admin: {admin} (/metrics, /admin/config, /docs)",
    ]
    lines.extend(f"  note: {note}" for note in notes)
    if key:
        more = "make more with `gateway keys new`" if can_make else "gone when the gateway ends"
        lines.append(f"  key:   {key}   (shown once; {more})")
    else:
        more = "; make one with `gateway keys new`" if can_make else ""
        lines.append(f"  key:   one of yours, here as $GATEWAY_KEY{more}")
    lines.append(f"  models: {', '.join(models) or 'none'}")
    if example is not None:
        lines += _examples(address, shown, example)
    return "\n".join(lines) + "\n"


def _examples(address: str, key: str, model: str) -> list[str]:
    body = f'{{"model":"{model}","messages":[{{"role":"user","content":"Hello"}}]}}'
    headers = f"-H \"Authorization: Bearer {key}\" -H 'Content-Type: application/json'"
    is_shown = not key.startswith("$")
    imports = (
        ["  from openai import OpenAI"]
        if is_shown
        else ["  import os", "  from openai import OpenAI"]
    )
    quoted = f'"{key}"' if is_shown else f'os.environ["{key[1:]}"]'
    messages = '[{"role": "user", "content": "Hello"}]'
    return [
        "",
        "Try it:",
        f"  curl -s {address}/v1/chat/completions {headers} -d '{body}'",
        "",
        "With the OpenAI SDK:",
        *imports,
        f'  client = OpenAI(base_url="{address}/v1", api_key={quoted})',
        f'  answer = client.chat.completions.create(model="{model}", messages={messages})',
        "  print(answer.choices[0].message.content)",
    ]
