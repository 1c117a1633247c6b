CREATE TABLE gateway_keys (
    tenant text NOT NULL,
    id text NOT NULL,
    hash text NOT NULL UNIQUE CHECK (hash ~ '^sha256:[0-9a-f]{64}$'),
    last_four text NOT NULL,
    models text[],
    expires double precision,
    created double precision NOT NULL,
    revoked boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, id)
);

-- A random number, so that a version is not taken twice after a failover that lost a change.
CREATE TABLE gateway_key_changes (version bigint NOT NULL);
INSERT INTO gateway_key_changes VALUES (1);

-- Triggers, so that a change by any program counts, also one made by hand.
CREATE FUNCTION gateway_keys_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE gateway_key_changes SET version = floor(random() * 4503599627370496)::bigint + 2;
    RETURN NULL;
END
$$;

CREATE TRIGGER gateway_keys_rows AFTER INSERT OR UPDATE OR DELETE ON gateway_keys
    FOR EACH ROW EXECUTE FUNCTION gateway_keys_changed();
CREATE TRIGGER gateway_keys_emptied AFTER TRUNCATE ON gateway_keys
    FOR EACH STATEMENT EXECUTE FUNCTION gateway_keys_changed();
