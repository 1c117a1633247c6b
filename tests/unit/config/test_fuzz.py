"""Whatever a file holds, the answer is a tree or a list of mistakes, never a traceback."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config.errors import ConfigError, Mistake
from gateway.config.loader import check
from gateway.config.reading import parse
from gateway.config.schema import Tree

CANARY = "canary-J8sKq2Lw9Xz4"
SEED = """\
server: {host: env:C?h, port: 1, admin: {port: 2, key: env:C}}
stores: {state: memory, database: sqlite:x}
telemetry: {log_level: info, otlp_endpoint: "http://h"}
providers: {a: {kind: openai, api_keys: [env:C], headers: {x: env:C}, timeout: {idle_s: 1}}}
models: {"m-*": {targets: [{provider: a, model: "*", params: {t: 0.5}}], supports: [tools]}}
prices: {a/m: [{input: 1, output: 2, from: 2026-01-01}]}
tenants:
  t: {keys: [{id: k, secret: env:C, expires: 2027-01-01}], models: ["m-*"], chain: [retry, stack: s]}
defaults: {chain: [{budget: {mode: off, when: {models: [m]}}}]}
stacks: {s: [retry]}
"""
SNIPPETS = st.sampled_from(
    ["{", "}", "[", "]", ": ", ", ", "- ", "&a ", "*a", "!!x ", "? ", "| ", "\n", "\n  ", "\t", '"', "'", "#", "env:", "env:C",
     "file:/", "null", "~", "1e999", "\x00", "\ufeff", "é", "<<: ", "---\n", "%YAML 1.1\n", "*", "@", "`", "[[[]]]", "{a: {b: {}}}"]
)  # fmt: skip


def refusals(folder: Path, data: bytes) -> list[Mistake]:
    file = folder / "c.yaml"
    file.write_bytes(data)
    return check(file, environ={"C": CANARY}, known_kinds={"openai": ()})


@pytest.mark.bug("K41")
@pytest.mark.threat("T-12")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_file_gives_mistakes_without_values(tmp_path: Path, data: st.DataObject) -> None:
    text = SEED
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(SNIPPETS) + text[end:]

    found = refusals(tmp_path, text.encode("utf-8", "surrogatepass"))

    assert CANARY not in "".join(map(str, found))
    assert found == sorted(found)


@pytest.mark.bug("K41")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_bytes_give_mistakes(tmp_path: Path, data: bytes) -> None:
    assert refusals(tmp_path, data)


@given(st.text(max_size=200))
def test_text_is_read_or_refused(text: str) -> None:
    document = parse(text, "f")

    assert document.root is not None or document.mistakes


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.bug("K41")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(sorted(Tree.model_fields)), values, max_size=4))
def test_a_tree_of_any_shape_is_built_or_refused(tree: dict[str, object]) -> None:
    from gateway.config.build import Origin, build
    from gateway.config.errors import Place
    from gateway.config.node import from_data

    with suppress(ConfigError):
        build(from_data(tree, Place("f", 1, 1)), Origin({}, (), None, {}), [])
