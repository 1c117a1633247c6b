CREATE TABLE gateway_ledger (
    run_id text NOT NULL,
    attempt integer NOT NULL,
    at_ms bigint NOT NULL,
    tenant text NOT NULL,
    key_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    agent text NOT NULL,
    model text NOT NULL,
    endpoint text NOT NULL,
    provider text NOT NULL,
    served text NOT NULL,
    kind text NOT NULL,
    input bigint NOT NULL,
    output bigint NOT NULL,
    cached bigint NOT NULL,
    cache_write bigint NOT NULL,
    reasoning bigint NOT NULL,
    cost_micro bigint NOT NULL,
    priced boolean NOT NULL,
    request_id text NOT NULL,
    tags jsonb NOT NULL,
    PRIMARY KEY (tenant, run_id, attempt)
);

CREATE INDEX gateway_ledger_at ON gateway_ledger (at_ms);
-- What totals add up stands in the index: a month of a tenant is summed without reading its rows.
CREATE INDEX gateway_ledger_tenant ON gateway_ledger (tenant, at_ms) INCLUDE (cost_micro, input, output, model);
CREATE INDEX gateway_ledger_key ON gateway_ledger (tenant, key_id, at_ms) INCLUDE (cost_micro, input, output);
CREATE INDEX gateway_ledger_user ON gateway_ledger (tenant, user_id, at_ms) WHERE user_id <> '';
CREATE INDEX gateway_ledger_session ON gateway_ledger (tenant, session_id, at_ms) WHERE session_id <> '';
