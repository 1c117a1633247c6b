-- What callers chose stands here as a digest. An entry is found by its prompts, its own and aliases; the vectors of
-- prompts get a column where the server has a type for them.
CREATE TABLE gateway_cache (
    tenant text NOT NULL,
    id text NOT NULL,
    partition text NOT NULL,
    namespace text NOT NULL,
    scope text NOT NULL,
    value text NOT NULL,
    model text NOT NULL,
    agent text NOT NULL,
    tags text[] NOT NULL,
    written bytea NOT NULL,
    answer bytea NOT NULL,
    vector bytea NOT NULL,
    created timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX gateway_cache_expires ON gateway_cache (expires);

CREATE TABLE gateway_cache_prompts (
    tenant text NOT NULL,
    prompt text NOT NULL,
    canonical text NOT NULL,
    space text NOT NULL,
    entry text NOT NULL,
    alias bytea NOT NULL,
    made timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (tenant, prompt),
    FOREIGN KEY (tenant, entry) REFERENCES gateway_cache (tenant, id) ON DELETE CASCADE
);

CREATE INDEX gateway_cache_prompts_canonical ON gateway_cache_prompts (tenant, canonical, made DESC)
    WHERE canonical <> '';
CREATE INDEX gateway_cache_prompts_space ON gateway_cache_prompts (tenant, space) WHERE space <> '';
CREATE INDEX gateway_cache_prompts_entry ON gateway_cache_prompts (tenant, entry);

-- An empty field means any.
CREATE TABLE gateway_cache_deletes (
    tenant text NOT NULL,
    epoch bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    id text NOT NULL,
    namespace text NOT NULL,
    scope text NOT NULL,
    value text NOT NULL,
    model text NOT NULL,
    agent text NOT NULL,
    tag text NOT NULL,
    PRIMARY KEY (tenant, epoch)
);

CREATE TABLE gateway_cache_blocked (
    tenant text NOT NULL,
    prompt text NOT NULL,
    entry text NOT NULL,
    id bytea NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (tenant, prompt, entry)
);
