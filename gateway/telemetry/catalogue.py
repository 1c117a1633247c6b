"""All metric names. A new metric is one row of `METRICS`.

Label values come from the configuration and closed sets: never a path, a client's text or a user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.telemetry.cells import Kind

OK = "ok"
"""The outcome of an attempt that did not fail; every other outcome is a machine code."""

_OPERATION_S = tuple(0.01 * 2**power for power in range(14))
_REQUEST_S = (0.0025, 0.005, *_OPERATION_S, 163.84, 327.68, 655.36)
_SHORT_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
TOKENS = tuple(4**power for power in range(14))

_C, _H = Kind.COUNTER, Kind.HISTOGRAM
_SUM, _MAX, _MIN = Kind.GAUGE_SUM, Kind.GAUGE_MAX, Kind.GAUGE_MIN


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    `hidden` labels are stored beside `labels` and added up where they are not shown. A row with
    `of` stores nothing: it shows that row's series under its own labels (a counter: how many
    observations they hold).
    `rename` gives the stored label behind a shown one where the names differ.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    hidden: tuple[str, ...] = ()
    of: str = ""
    rename: Mapping[str, str] = field(default_factory=dict[str, str])


_REQUEST = ("tenant", "model", "endpoint")
DURATION = "gateway_request_duration_seconds"
UPSTREAM = "gateway_upstream_duration_seconds"
TOKENS_TOTAL = "gateway_tokens_total"
_GENAI = {
    "gen_ai_operation_name": "operation",
    "gen_ai_provider_name": "system",
    "gen_ai_request_model": "model",
    "gen_ai_token_type": "type",
    "error_type": "error",
}

_ROWS = (
    Metric(
        "gateway_requests_total",
        _C,
        "Requests that were answered or given up, by HTTP status (499: the client left).",
        (*_REQUEST, "status"),
        of=DURATION,
    ),
    Metric(
        DURATION,
        _H,
        "Time from the request's first byte to the last byte of its answer, in seconds.",
        _REQUEST,
        _REQUEST_S,
        hidden=("status",),
    ),
    Metric(
        "gateway_overhead_seconds",
        _H,
        "The part of a request's time that was not spent waiting for a provider, in seconds.",
        ("endpoint",),
        _SHORT_S,
    ),
    Metric(
        "gateway_time_to_first_chunk_seconds",
        _H,
        "Time from a streamed request's first byte to the first chunk of its answer, in seconds.",
        ("model", "endpoint"),
        _REQUEST_S,
    ),
    Metric("gateway_in_flight_requests", _SUM, "Requests that are being handled now."),
    Metric(
        "gateway_shed_requests_total",
        _C,
        "Requests that were refused before any work, by reason.",
        ("reason",),
    ),
    Metric(
        "gateway_client_disconnects_total",
        _C,
        "Requests whose client left before the answer was complete.",
        ("endpoint",),
    ),
    Metric(
        "gateway_upstream_attempts_total",
        _C,
        "Calls to providers by outcome: `ok`, `hedged` (another call of the request was faster) or the machine "
        "code of the failure.",
        ("provider", "model", "outcome"),
        of=UPSTREAM,
    ),
    Metric(
        UPSTREAM,
        _H,
        "Time of one call to a provider, from sending to the last byte, in seconds.",
        ("provider", "model"),
        _OPERATION_S,
        hidden=("system", "operation", "outcome", "error"),
    ),
    Metric(
        "gateway_guardrail_verdicts_total",
        _C,
        "What guardrails said of requests (input) and answers (output): pass, flag, redact, block, error, audit; "
        "`bytes`: pictures and sounds, which hold no texts.",
        ("guardrail", "phase", "verdict"),
    ),
    Metric(
        "gateway_guardrail_stream_chars_total",
        _C,
        "Characters of streamed answers that guardrails have judged, and those that were sent: never more.",
        ("guardrail", "stage"),
    ),
    Metric(
        "gateway_guardrail_stuck_threads",
        _SUM,
        "Threads that are kept by calls of checks that were given up and have not returned.",
        ("guardrail",),
    ),
    Metric(
        "gateway_cache_requests_total",
        _C,
        "Requests that came to a cache: hit-exact, hit-semantic, miss, off.",
        ("tenant", "result"),
    ),
    Metric(
        "gateway_cache_misses_total",
        _C,
        "Why requests were not answered from the cache: cold, threshold, the guard that refused, volatile, ...",
        ("tenant", "reason"),
    ),
    Metric(
        "gateway_cache_stores_total",
        _C,
        "Answers that came to be kept: `kept`, or why they were not (length, tool_calls, size, unavailable, ...).",
        ("tenant", "result"),
    ),
    Metric(
        "gateway_cache_saved_tokens_total",
        _C,
        "Tokens that hits did not cost, by the length of question and answer.",
        ("tenant", "type"),
    ),
    Metric(
        "gateway_cache_saved_cost_usd_total",
        _C,
        "What hits did not cost, by the price of the model's first target.",
        ("tenant",),
    ),
    Metric(
        "gateway_cache_wrong_hit_estimate",
        _MAX,
        "The share of similar hits that labels tell to be wrong, where `max_wrong_hit_rate` is set; once it is "
        "broken, the share that broke it.",
        ("tenant", "namespace", "agent"),
    ),
    Metric(
        "gateway_cache_wrong_hit_bound",
        _MAX,
        "The bound on that share, at 90 %; 1 while labels prove none, so that they have nothing served.",
        ("tenant", "namespace", "agent"),
    ),
    Metric(
        "gateway_cache_pool_changes_total",
        _C,
        "Pools whose bound on wrong hits broke (`broken`) or came to hold (`certified`).",
        ("tenant", "change"),
    ),
    Metric(
        "gateway_cache_scope_mismatch_total",
        _C,
        "Kept answers that were not what their key said; none of them was served. Anything but 0 is an alarm.",
    ),
    Metric(
        "gateway_shadow_verdicts_total",
        _C,
        "What layers in shadow mode would have done: `answer`, `retry`, `fallback`, `hedge`, or the machine "
        "code of the refusal.",
        ("middleware", "verdict"),
    ),
    Metric(
        "gateway_limit_rejections_total",
        _C,
        "Calls that a limit refused, by its entry in the chain and the unit that was full.",
        ("tenant", "limit", "unit"),
    ),
    Metric(
        "gateway_budget_rejections_total",
        _C,
        "Calls and streams that a budget refused or ended, by its entry in the chain and the unit.",
        ("tenant", "budget", "unit"),
    ),
    Metric(
        "gateway_budget_remaining_ratio",
        _MIN,
        "What is left of a tenant's budget in its window, reservations taken off: 1 is all of it. Budgets of keys, "
        "users and sessions are not shown.",
        ("tenant", "budget", "unit", "per"),
    ),
    Metric(
        "gateway_retries_total",
        _C,
        "Model calls that `retry` made again, by the status that they had failed with.",
        ("tenant", "model", "status"),
    ),
    Metric(
        "gateway_retries_withheld_total",
        _C,
        "Failures that `retry` did not repeat although their status is listed: `attempts`, `retry_after`, "
        "`deadline` or `budget` were used up.",
        ("tenant", "model", "reason"),
    ),
    Metric(
        "gateway_fallbacks_total",
        _C,
        "Times that `fallback` went on from a model that had failed to the next one.",
        ("from", "to"),
    ),
    Metric(
        "gateway_fallbacks_skipped_total",
        _C,
        "Times that `fallback` passed over a model because it cannot serve the request.",
        ("from", "to"),
    ),
    Metric(
        "gateway_hedges_total",
        _C,
        "Slow calls that `hedge` made a second time, by which one was taken (`first`, `second`, `none`), or "
        "why it was not made (`budget`).",
        ("tenant", "model", "outcome"),
    ),
    Metric(
        "gateway_idempotent_requests_total",
        _C,
        "Requests with an idempotency key: `first`, `replayed`, `unprotected` (the store was down, by "
        "`on_state_down`), or the machine code of the refusal.",
        ("tenant", "outcome"),
    ),
    Metric(
        "gateway_breaker_state",
        _MAX,
        "Whether a target is left alone because it fails: 0 no, 1 it is tried again, 2 yes; the worst worker.",
        ("provider", "model"),
    ),
    Metric(
        "gateway_target_concurrency_limit",
        _SUM,
        "Calls at once that a target gets at most, all workers together; +Inf: without a limit.",
        ("provider", "model"),
    ),
    Metric(
        "gateway_stream_parse_failures_total",
        _C,
        "Broken events in providers' streams.",
        ("provider",),
    ),
    Metric(
        TOKENS_TOTAL,
        _C,
        "Tokens as providers counted them, by type; their parts are told apart where named.",
        ("tenant", "model", "type"),
    ),
    Metric(
        "gateway_cost_usd_total",
        _C,
        "Cost of calls to providers in US dollars, estimates included; calls without a known price are not.",
        ("tenant", "model"),
    ),
    Metric(
        "gen_ai_client_token_usage",
        _H,
        "Input and output tokens of one call to a provider (gen_ai.client.token.usage).",
        (
            "gen_ai_operation_name",
            "gen_ai_provider_name",
            "gen_ai_request_model",
            "gen_ai_token_type",
        ),
        TOKENS,
    ),
    Metric(
        "gen_ai_client_operation_duration",
        _H,
        "Time of one call to a provider in seconds (gen_ai.client.operation.duration).",
        ("gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"),
        _OPERATION_S,
        of=UPSTREAM,
        rename=_GENAI,
    ),
    Metric(
        "gateway_state_down",
        _MAX,
        "1 while a server of the shared state (`stores.state`) does not answer and calls to it fail at once, else "
        "0; the worst worker.",
    ),
    Metric(
        "gateway_state_failures_total",
        _C,
        "Calls to the shared state that failed: `down` (not tried), `late`, `lost` (with the connection), `full` "
        "(no memory left there), `refused`.",
        ("reason",),
    ),
    Metric(
        "gateway_config_generation",
        _MIN,
        "Number of the configuration in use; with several workers that of the last to follow.",
    ),
    Metric(
        "gateway_config_stale",
        _MAX,
        "1 while the configuration on disk is not in use because it has mistakes, else 0.",
    ),
    Metric(
        "gateway_config_replaced",
        _SUM,
        "Replaced configurations that running requests may still use; they go with the last of these.",
    ),
    Metric(
        "gateway_loop_lag_seconds",
        _H,
        "How late the event loop ran a timer, in seconds.",
        (),
        _LAG_S,
    ),
    Metric(
        "gateway_loop_lag_max_seconds",
        _MAX,
        "The worst lag of the event loop in the last 15 seconds.",
    ),
    Metric(
        "gateway_log_lines_lost_total",
        _C,
        "Log lines that could not be written: the disk was full or the reader too slow.",
    ),
    Metric("gateway_info", _MAX, "Always 1; the version of the gateway is a label.", ("version",)),
)

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
"""Every metric of the gateway itself, in the order of /metrics."""
