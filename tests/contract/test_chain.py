"""The chain as a caller sees it: order, short circuits, state, streams, conditions; probes are plug-ins."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.chain.layers import middleware_rows
from gateway.config.errors import ConfigError
from gateway.core.status import Status
from tests.support.models import ask, chained, refuse, said, texts
from tests.support.serving import Serving

PROBES = '''
from gateway.core.errors import GatewayError
from gateway.core.reply import Whole
from gateway.middleware.base import Middleware


class Probe(Middleware):
    """Notes nothing itself: the tap does."""

    async def before_request(self, call):
        return None

    async def wrap_turn(self, call, proceed):
        return await proceed(call)

    async def wrap_model(self, call, proceed):
        return await proceed(call)


class Short(Middleware):
    async def before_model(self, call):
        return call.answer("from the layer")

    async def after_model(self, call, reply):
        call.run.warn("own after ran")


class Mark(Middleware):
    async def after_model(self, call, reply):
        if isinstance(reply, Whole):
            return reply._replace(body=reply.body.replace(b"hello", b"%s(hello)" % self.id.encode()))
        call.run.warn(f"{self.id} saw the end")


class Rewrite(Middleware):
    async def after_request(self, call, reply):
        return Whole(200, ((b"content-type", b"application/json"),), b'{"rewritten":true}')


class Recover(Middleware):
    async def on_error_model(self, call, error):
        return call.answer("hello")


class Own(Middleware):
    """Fails in its own before; its own on_error must not see that."""

    async def before_model(self, call):
        raise GatewayError("permission_denied")

    async def on_error_model(self, call, error):
        return call.answer("swallowed")


class Count(Middleware):
    async def wrap_model(self, call, proceed):
        seen = call.state.setdefault(self.id, 0) + 1
        call.state[self.id] = seen
        reply = await proceed(call)
        call.run.warn(f"count {seen}")
        return reply


class Bug(Middleware):
    async def before_model(self, call):
        raise ValueError("secret-42")


class Deny(Middleware):
    async def before_request(self, call):
        raise GatewayError("permission_denied")


class Hot(Middleware):
    async def before_model(self, call):
        call.set("temperature", 0.25)


class Veto(Middleware):
    async def before_attempt(self, attempt):
        raise GatewayError("permission_denied", detail=attempt.served)


class Ending(Middleware):
    def finish(self, run):
        with open(__file__ + ".ended", "a") as file:
            file.write(f"{run.status} {run.code}\\n")


class Needy(Middleware):
    from gateway.core.needs import Needs
    needs = Needs(whole=True)

    async def after_model(self, call, reply):
        return reply._replace(body=reply.body.replace(b"hello", b"changed"))
'''
FILES = {"probes.py": PROBES}


def plug(name: str, **more: object) -> dict[str, object]:
    return {"plugin": f"probes.py:{name}", **more}


async def steps(gateway: Serving, request_id: str, level: str) -> list[tuple[str, str]]:
    trace = gateway.worker.traces.find(request_id)
    assert trace is not None
    return [(step["name"], step["phase"]) for step in trace["steps"] if step["level"] == level]


@pytest.mark.contract("G-CORE-5", "W-PIPE-2", "T-001", "G-CORE-16")
async def test_the_first_entry_is_the_outermost_layer(tmp_path: Path) -> None:
    chain = [plug("Probe", id="A"), plug("Probe", id="B")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(), x_request_id="r1")
        found = await steps(gateway, "r1", "model")

    assert answer.status_code == 200
    assert found == [("A", "start"), ("B", "start"), ("B", "finish"), ("A", "finish")]
    assert models.n("m1") == 1


@pytest.mark.contract("G-CORE-6", "T-003")
async def test_a_run_without_tools_has_one_turn(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Probe")], files=FILES, m1=[said()]) as (gateway, _):
        await gateway.post(ask(), x_request_id="r1")
        found = await steps(gateway, "r1", "turn")

    assert found == [("Probe", "start"), ("Probe", "finish")]


@pytest.mark.contract("G-CORE-11", "T-010", "W-TRIP-1")
async def test_a_layer_that_answers_itself_ends_the_way_down(tmp_path: Path) -> None:
    chain = [plug("Mark", id="outer"), plug("Short")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(), x_request_id="r1")
        trace = gateway.worker.traces.find("r1")

    assert answer.json()["choices"][0]["message"]["content"] == "from the layer"
    assert answer.json()["usage"]["total_tokens"] == 0
    assert models.n() == 0
    assert trace is not None
    (short,) = [s for s in trace["steps"] if s.get("name") == "Short" and s["phase"] == "finish"]
    assert short["short_circuited"] is True


@pytest.mark.contract("W-PIPE-3", "T-169")
async def test_a_short_circuit_skips_the_own_after_and_runs_outer_ones(tmp_path: Path) -> None:
    chain = [plug("Needy", id="outer"), plug("Short")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, _):
        answer = await gateway.post(ask())

    assert "own after ran" not in answer.headers.get("x-gateway-warnings", "")
    assert answer.status_code == 200


@pytest.mark.contract("W-TRIP-4", "T-175")
async def test_a_stream_answered_by_a_layer_is_a_whole_stream(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Short")], files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(stream=True))

    assert texts(answer.text) == "from the layer"
    assert answer.text.endswith("data: [DONE]\n\n")
    assert models.n() == 0


@pytest.mark.contract("W-PIPE-4", "T-168")
async def test_after_hooks_wrap_from_the_inside_out(tmp_path: Path) -> None:
    chain = [plug("Mark", id="outer"), plug("Mark", id="inner")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.json()["choices"][0]["message"]["content"] == "inner(outer(hello))"


@pytest.mark.contract("W-PIPE-5", "T-170", "W-TRIP-3")
async def test_a_recovered_error_is_an_answer_for_outer_layers(tmp_path: Path) -> None:
    chain = [plug("Mark", id="outer"), plug("Recover")]
    async with chained(tmp_path, chain, files=FILES, m1=[refuse(503)]) as (gateway, _):
        answer = await gateway.post(ask())

    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "outer(hello)"


@pytest.mark.contract("W-PIPE-6")
async def test_an_own_error_is_for_outer_layers_alone(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Own")], files=FILES, m1=[said()]) as (gateway, models):
        alone = await gateway.post(ask())
    async with chained(tmp_path, [plug("Recover"), plug("Own")], files=FILES, m1=[said()]) as (
        gateway,
        models,
    ):
        inside = await gateway.post(ask())

    assert (alone.status_code, models.n()) == (403, 0)
    assert inside.status_code == 200


@pytest.mark.contract("W-EXEC-1", "T-173", "G-STR-7")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_before_the_run_calls_nobody(tmp_path: Path, stream: bool) -> None:
    async with chained(tmp_path, [plug("Deny")], files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask(stream=stream))

    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "permission_denied"
    assert models.n() == 0


@pytest.mark.contract("W-EXEC-2", "T-174")
async def test_a_late_change_of_a_stream_is_told_and_not_made(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Rewrite")], files=FILES, m1=[said()]) as (gateway, _):
        plain = await gateway.post(ask())
        streamed = await gateway.post(ask(stream=True))

    assert plain.json() == {"rewritten": True}
    assert texts(streamed.text) == "hello"
    assert "cannot be changed" in str(gateway.records()[-1]["warnings"])


@pytest.mark.contract("W-EXEC-2", "T-174")
async def test_a_layer_that_needs_the_whole_answer_can_change_a_stream(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Needy")], files=FILES, m1=[said()]) as (gateway, models):
        streamed = await gateway.post(ask(stream=True))

    assert texts(streamed.text) == "changed"
    assert streamed.text.endswith("data: [DONE]\n\n")
    assert "stream" not in models.asked[0].body


@pytest.mark.contract("G-CORE-3", "W-STATE-1", "T-005", "T-006")
async def test_state_lives_for_one_run(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Count")], files=FILES, m1=[said()]) as (gateway, _):
        one = [await gateway.post(ask()) for _ in range(3)]
        many = await asyncio.gather(*(gateway.post(ask()) for _ in range(20)))

    assert {answer.headers["x-gateway-warnings"] for answer in (*one, *many)} == {"count 1"}


@pytest.mark.contract("G-STAT-3", "G-STAT-7")
@pytest.mark.fault("L-14")
async def test_a_bug_in_a_plug_in_is_a_plain_500_that_quotes_nobody(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Bug")], files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "secret-42" not in answer.text
    assert models.n() == 0


@pytest.mark.contract("G-CORE-10")
async def test_a_layer_changes_the_request_for_what_is_inside(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Hot")], files=FILES, m1=[said()]) as (gateway, models):
        await gateway.post(ask(temperature=1))

    assert models.asked[0].body["temperature"] == 0.25


async def test_a_veto_before_an_attempt_sends_nothing(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Veto")], files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())

    assert answer.status_code == 403
    assert models.n() == 0
    assert "x-gateway-attempts" not in answer.headers


@pytest.mark.contract("D-18")
async def test_finish_is_called_once_on_every_ending(tmp_path: Path) -> None:
    async with chained(
        tmp_path, [plug("Ending")], files=FILES, m1=[said(), refuse(500), said()]
    ) as (
        gateway,
        _,
    ):
        await gateway.post(ask())
        await gateway.post(ask())
        await gateway.post(ask(stream=True))

    assert (tmp_path / "probes.py.ended").read_text() == "200 \n500 upstream_error\n200 \n"


@pytest.mark.contract("W-PIPE-9", "R-5", "R-17", "R-22", "T-171")
@pytest.mark.parametrize(
    ("chain", "words"),
    [
        ([plug("Probe"), plug("Probe")], "already taken"),
        ([None], "must be a name"),
        ([plug("Probe", id="")], "not allowed"),
        ([plug("Probe", id="a/b")], "not allowed"),
        ([plug("Nobody")], "has no Nobody"),
        ([{"plugin": "other.py:Probe"}], "there is no file"),
        ([{"plugin": "../probes.py:Probe"}], "outside"),
        ([{"plugin": "probes.py"}], "file.py:Name"),
        ([plug("Probe", surprise=1)], "surprise"),
        (["retri"], "did you mean"),
        ([{"retry": {"max_retries": -1}}], "retry.max_retries: must be at least 0"),
        ([{"retry": {"statuses": ["NOPE"]}}], "retry.statuses"),
        ([{"retry": {"max_retrys": 1}}], 'did you mean "max_retries"'),
        ([{"fallback": {"models": ["ghost"]}}], "R-22"),
    ],
)
async def test_what_cannot_be_built_stops_the_start_with_its_place(
    tmp_path: Path, chain: list[Any], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        async with chained(tmp_path, chain, files=FILES, m1=[said()]):
            pass

    assert words in str(raised.value)
    assert "gateway.yaml:1:" in str(raised.value)


@pytest.mark.contract("W-PIPE-8", "T-172")
async def test_a_layer_that_is_not_to_be_logged_leaves_no_steps(tmp_path: Path) -> None:
    chain = [plug("Probe", id="A", log=False), plug("Probe", id="B")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, _):
        await gateway.post(ask(), x_request_id="r1")
        found = await steps(gateway, "r1", "model")
        trace = gateway.worker.traces.find("r1")

    assert found == [("B", "start"), ("B", "finish")]
    assert trace is not None
    assert trace["steps"][-1]["outcome"] == "ok"


@pytest.mark.contract("W-HELP-1", "T-180")
async def test_stacks_and_nested_lists_are_flattened_in_order(tmp_path: Path) -> None:
    def stacked(config: dict[str, Any]) -> None:
        config["stacks"] = {"s": [[plug("Probe", id="B")], plug("Probe", id="C")]}

    chain = [plug("Probe", id="A"), [{"stack": "s"}, [plug("Probe", id="D")]]]
    async with chained(tmp_path, chain, files=FILES, config=stacked, m1=[said()]) as (gateway, _):
        await gateway.post(ask(), x_request_id="r1")
        found = await steps(gateway, "r1", "model")

    assert [name for name, phase in found if phase == "start"] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("when", "model", "seen"),
    [
        ({"models": ["m1"]}, "m1", True),
        ({"models": ["m1"]}, "m2", False),
        ({"models": ["m*"]}, "m2", True),
        ({"paths": ["/v1/chat/*"]}, "m1", True),
        ({"paths": ["/v1/embeddings"]}, "m1", False),
    ],
)
async def test_an_entry_sees_only_the_calls_of_its_condition(
    tmp_path: Path, when: dict[str, Any], model: str, seen: bool
) -> None:
    chain = [plug("Hot", when=when)]
    async with chained(tmp_path, chain, files=FILES, m1=[said()], m2=[said()]) as (gateway, models):
        await gateway.post(ask(model))

    assert ("temperature" in models.asked[0].body) is seen


async def test_a_shadowed_layer_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    chain = [plug("Deny", mode="shadow"), plug("Short", mode="shadow"), plug("Hot", mode="shadow")]
    async with chained(tmp_path, chain, files=FILES, m1=[said()]) as (gateway, models):
        answer = await gateway.post(ask())
        counted = gateway.count(
            "gateway_shadow_verdicts_total", middleware="Deny", verdict="permission_denied"
        )

    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert "temperature" not in models.asked[0].body
    assert counted == 1


async def test_an_entry_that_is_off_is_not_there(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Deny", mode="off")], files=FILES, m1=[said()]) as (
        gateway,
        _,
    ):
        assert (await gateway.post(ask())).status_code == 200


@pytest.mark.contract("W-PIPE-10")
async def test_an_empty_chain_is_a_direct_call(tmp_path: Path) -> None:
    async with chained(tmp_path, [], m1=[said()]) as (gateway, _):
        assert (await gateway.post(ask())).status_code == 200


@pytest.mark.contract("G-CORE-8", "T-004")
async def test_a_layer_inside_a_retry_fires_for_each_try(tmp_path: Path) -> None:
    quick = {"retry": {"max_retries": 2, "initial_delay_ms": 1, "jitter": "none"}}
    chain = [plug("Probe", id="out"), quick, plug("Probe", id="in")]
    script = [refuse(503), refuse(503), said()]
    async with chained(tmp_path, chain, files=FILES, m1=script) as (gateway, _):
        answer = await gateway.post(ask(), x_request_id="r1")
        found = await steps(gateway, "r1", "model")
        attempts = await steps(gateway, "r1", "attempt")

    assert answer.headers["x-gateway-attempts"] == "3"
    assert found.count(("out", "start")) == 1
    assert found.count(("in", "start")) == 3
    assert attempts == [("up/m1", "start"), ("up/m1", "finish")] * 3


@pytest.mark.contract("G-REG-2", "T-015")
def test_every_kind_is_listed_with_options_that_are_described() -> None:
    rows = {row["name"]: row["options"] for row in middleware_rows()}

    assert {"retry", "fallback", "hedge", "limits", "budget"} <= set(rows)
    for name, options in rows.items():
        for option, schema in options["properties"].items():
            assert schema.get("description"), f"{name}.{option}"
    statuses = [rows[name]["properties"]["statuses"] for name in ("retry", "fallback")]
    assert all(status in str(rows) for status in Status)
    assert statuses[0]


@pytest.mark.contract("D-8")
async def test_the_outcome_is_recorded_wherever_the_run_ended(tmp_path: Path) -> None:
    async with chained(tmp_path, [plug("Short")], files=FILES, m1=[said()]) as (gateway, _):
        await gateway.post(ask(), x_request_id="short")
        await gateway.post(ask("nothing"), x_request_id="unknown")
        short = gateway.worker.traces.find("short")
        unknown = gateway.worker.traces.find("unknown")

    assert short is not None
    assert unknown is not None
    assert (short["steps"][-1]["outcome"], short["steps"][-1]["attempts"]) == ("ok", 0)
    assert unknown["steps"][-1]["outcome"] == "model_not_found"
