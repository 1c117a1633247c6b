from collections.abc import Callable

import pytest

from gateway.config.references import Secret
from gateway.config.schema import Tree

LoadText = Callable[..., Tree]
CheckText = Callable[..., list[str]]

MODELS = """\
providers: {p: {kind: echo}}
models: {m: {targets: [{provider: p, model: m}]}}
"""


def test_entries_are_read_into_one_form(load_text: LoadText) -> None:
    tree = load_text(
        MODELS
        + """\
tenants:
  t:
    models: [m]
    chain:
      - retry
      - budget: {limits: [{usd: 1}], id: cap, mode: off, log: true, when: {models: ["m*"]}}
      - guardrail: {input: [{kind: http, token: env:ACME_KEY}], for_tools: [search]}
"""
    )

    retry, budget, guardrail = tree.chain_of("t")

    assert (retry.kind, retry.id, retry.mode, retry.log) == ("retry", "retry", "enforce", True)
    assert retry.options == {}
    assert str(retry.place).endswith("gateway.yaml:7:9")
    assert (budget.kind, budget.id, budget.mode, budget.log) == ("budget", "cap", "off", True)
    assert budget.options == {"limits": [{"usd": 1}]}
    assert budget.when is not None
    assert budget.when.models == ("m*",)
    assert guardrail.for_tools == ("search",)
    assert isinstance(guardrail.options["input"][0]["token"], Secret)


def test_stacks_are_replaced_in_place(load_text: LoadText) -> None:
    tree = load_text(
        MODELS
        + """\
stacks:
  base: [retry]
  full: [limits, stack: base, budget]
defaults: {chain: [{stack: base}]}
tenants:
  own: {models: [m], chain: [semantic_cache, stack: full], agents: {a: {model: m}, b: {model: m, chain: []}}}
  default: {models: [m], agents: {a: {model: m, chain: [limits]}}}
  none: {models: [m], chain: []}
"""
    )

    def kinds(tenant: str, agent: str | None = None) -> list[str]:
        return [entry.kind for entry in tree.chain_of(tenant, agent)]

    assert kinds("own") == ["semantic_cache", "limits", "retry", "budget"]
    assert kinds("own", "a") == kinds("own")
    assert kinds("own", "b") == []
    assert kinds("default") == ["retry"]
    assert kinds("default", "a") == ["limits"]
    assert kinds("none") == []


@pytest.mark.bug("K41")
@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ("[rety]", '3:26: tenants.t.chain[0]: there is no middleware "rety" (did you mean "retry"?)'),
        (
            "[tool_approval: {for_tools: [x]}]",
            '3:26: tenants.t.chain[0]: "tool_approval" is not in this version: it protects somebody',
        ),
        ("[tool_aproval]", '3:26: tenants.t.chain[0]: there is no middleware "tool_aproval" (did you mean "tool_approval"?)'),
        ("[idempotency]", '3:26: tenants.t.chain[0]: "idempotency" is no middleware: it needs no entry'),
        ("[retry, retry]", '3:33: tenants.t.chain[1]: the id "retry" is already taken at'),
        ("[retry, stack: s]", '3:33: tenants.t.chain[1]: the id "retry" is already taken at'),
        ("[stack: z]", '3:33: tenants.t.chain[0].stack: there is no stack "z"'),
        ("[stack: [s]]", "3:33: tenants.t.chain[0].stack: must be the name of a stack, written here"),
        ("[stcak: s]", "3:33: tenants.t.chain[0].stcak: must be a block with the options of stcak"),
        ("[{}]", "3:26: tenants.t.chain[0]: must be a name (retry) or one key"),
        ("[{retry: {}, budget: {}}]", "3:26: tenants.t.chain[0]: must be a name (retry) or one key"),
        ("[7]", "3:26: tenants.t.chain[0]: must be a name (retry) or one key"),
        ("[[7]]", "3:27: tenants.t.chain[0][0]: must be a name (retry) or one key"),
        ("[retry: 3]", "3:33: tenants.t.chain[0].retry: must be a block with the options of retry"),
        ("[retry: ]", "3:26: tenants.t.chain[0].retry: is empty: write retry alone, or give it options"),
        ("[retry: {mode: of}]", "3:40: tenants.t.chain[0].retry.mode: must be one of: 'enforce', 'shadow' or 'off' (did you mean \"off\"?)"),
        ("[retry: {log: yes}]", "3:39: tenants.t.chain[0].retry.log: must be true or false"),
        ("[retry: {id: a b}]", "3:38: tenants.t.chain[0].retry.id: has characters that are not allowed here"),
        ("[retry: {when: {model: [m]}}]", '3:41: tenants.t.chain[0].retry.when: unknown key "model" (did you mean "models"?)'),
        ("[retry: {when: {}}]", "3:40: tenants.t.chain[0].retry.when: is empty"),
        ("[retry: {for_tools: []}]", "3:45: tenants.t.chain[0].retry.for_tools: is an empty list"),
        ("[retry: {options: {a: }}]", "3:44: tenants.t.chain[0].retry.options.a: is empty"),
        ("retry", "3:25: tenants.t.chain: must be a list"),
    ],
)  # fmt: skip
def test_refuses_entries_that_say_nothing_clear(
    check_text: CheckText, chain: str, expected: str
) -> None:
    text = f"{MODELS}tenants: {{t: {{   chain: {chain}}}}}\nstacks: {{s: [retry]}}\n"

    found = check_text(text)

    assert len(found) == 1
    assert found[0].startswith(expected), found


def test_stacks_that_hold_themselves_are_refused(check_text: CheckText) -> None:
    found = check_text("stacks:\n  a: [stack: b]\n  b: [stack: a]\n  c: [stack: a, retry]\n")

    assert found == [
        '2:3: stacks.a: the stack "a" holds itself',
        '3:3: stacks.b: the stack "b" holds itself',
    ]


def test_any_kind_is_taken_while_none_is_known(load_text: LoadText) -> None:
    assert load_text("defaults: {chain: [anything]}\n").defaults.chain[0].kind == "anything"
