"""The statements of the cache in Postgres."""

from typing import Final, NamedTuple

_KEPT: Final = (
    "e.written, e.answer, e.vector, extract(epoch FROM e.created)::float8 AS created, "
    "extract(epoch FROM e.expires)::float8 AS expires"
)
_FIELDS: Final = ("id", "namespace", "scope", "value", "model", "agent")
_MEANT: Final = " AND ".join(f"(d.{name} = '' OR d.{name} = e.{name})" for name in _FIELDS)
_LONGEST: Final = "interval '31 days'"

# Writers share it, a delete has it alone: what was written before is found, what comes later finds the delete.
SHARED: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended('gateway_cache ' || $1, 0))"
ALONE: Final = "SELECT pg_advisory_xact_lock(hashtextextended('gateway_cache ' || $1, 0))"

# All texts are of this file.
LOOK: Final = f"""
SELECT 'epoch' AS found, ''::bytea AS written, ''::bytea AS answer, ''::bytea AS vector, 0::float8 AS created,
    coalesce(max(epoch), 0)::float8 AS expires FROM gateway_cache_deletes WHERE tenant = $1
UNION ALL SELECT 'exact', {_KEPT} FROM gateway_cache_prompts AS p
    JOIN gateway_cache AS e ON e.tenant = p.tenant AND e.id = p.entry
    WHERE p.tenant = $1 AND p.prompt = $2 AND e.expires > clock_timestamp() AND NOT EXISTS (
        SELECT 1 FROM gateway_cache_blocked AS b
        WHERE b.tenant = $1 AND b.prompt = $2 AND b.entry = p.entry)
UNION ALL (SELECT 'canonical', {_KEPT} FROM gateway_cache_prompts AS p
    JOIN gateway_cache AS e ON e.tenant = p.tenant AND e.id = p.entry
    WHERE p.tenant = $1 AND p.canonical = $3 AND p.canonical <> '' AND e.expires > clock_timestamp()
    AND NOT EXISTS (
        SELECT 1 FROM gateway_cache_blocked AS b
        WHERE b.tenant = $1 AND b.prompt = $2 AND b.entry = p.entry)
    ORDER BY p.made DESC LIMIT 1)"""  # noqa: S608
GET: Final = f"""SELECT {_KEPT} FROM gateway_cache AS e
    WHERE tenant = $1 AND id = $2 AND expires > clock_timestamp()"""  # noqa: S608

_FORBIDDEN: Final = f"""SELECT 1 FROM gateway_cache_deletes AS d, given AS e
    WHERE d.tenant = $1 AND d.epoch > $15 AND {_MEANT} AND (d.tag = '' OR d.tag = ANY(e.tags))"""  # noqa: S608
PUT: Final = f"""
WITH given (id, partition, namespace, scope, value, model, agent, tags) AS (
    VALUES ($2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text, $9::text[]))
INSERT INTO gateway_cache AS kept (tenant, id, partition, namespace, scope, value, model, agent, tags, written,
    answer, vector, created, expires)
SELECT $1::text, id, partition, namespace, scope, value, model, agent, tags, $10::bytea, $11::bytea, $12::bytea,
    now(), now() + make_interval(secs => $13::float8)
FROM given WHERE $14::boolean AND NOT EXISTS ({_FORBIDDEN})
ON CONFLICT (tenant, id) DO UPDATE SET model = excluded.model, agent = excluded.agent, tags = excluded.tags,
    written = excluded.written, answer = excluded.answer, vector = excluded.vector
    WHERE kept.partition = excluded.partition AND kept.expires > now()"""  # noqa: S608

MARK: Final = f"""WITH old AS (DELETE FROM gateway_cache_deletes WHERE tenant = $1 AND at < now() - {_LONGEST})
INSERT INTO gateway_cache_deletes (tenant, {", ".join(_FIELDS)}, tag)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""  # noqa: S608
_CHOSEN: Final = " AND ".join(
    f"(${at}::text = '' OR {name} = ${at}::text)" for at, name in enumerate(_FIELDS, 2)
)
DELETE: Final = f"""DELETE FROM gateway_cache WHERE tenant = $1 AND {_CHOSEN}
    AND ($8::text = '' OR $8::text = ANY(tags))"""  # noqa: S608

BLOCK: Final = f"""INSERT INTO gateway_cache_blocked (tenant, prompt, entry, id, until)
    VALUES ($1, $2, $3, $4, now() + {_LONGEST}) ON CONFLICT DO NOTHING"""  # noqa: S608
UNLEAD: Final = "DELETE FROM gateway_cache_prompts WHERE tenant = $1 AND prompt = $2 AND entry = $3"
BLOCKED: Final = (
    "SELECT id FROM gateway_cache_blocked WHERE tenant = $1 AND prompt = $2 AND until > now()"
)
STATS: Final = """SELECT count(*) AS entries, count(*) FILTER (WHERE vector <> '') AS vectors,
    count(DISTINCT partition) AS partitions,
    coalesce(sum(length(answer) + length(vector) + length(written)), 0) AS bytes
    FROM gateway_cache WHERE tenant = $1 AND expires > clock_timestamp()"""
SWEEPS: Final = (
    """DELETE FROM gateway_cache WHERE ctid IN (SELECT ctid FROM gateway_cache
    WHERE expires < now() ORDER BY expires LIMIT 500 FOR UPDATE SKIP LOCKED)""",
    "DELETE FROM gateway_cache_blocked WHERE until < now()",
)

EXTENSION: Final = """SELECT quote_ident(n.nspname) AS place FROM pg_extension AS e
    JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"""
EXTEND: Final = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
HAS_COLUMN: Final = """SELECT 1 FROM pg_attribute WHERE attrelid = 'gateway_cache_prompts'::regclass
    AND attname = 'v' AND NOT attisdropped"""


class VectorSql(NamedTuple):
    """The statements that hold vectors; without a type for them those that hold none."""

    lead: str
    column: str = ""
    nearest: str = ""


def vector_sql(place: str) -> VectorSql:
    """Write the statements for the schema that has the type of vectors, as SQL quotes it; "" for none.

    The search looks at all of a pool and at nothing else: an index over all pools would find the vectors of others
    first, and a filter behind it nothing that is one's own.
    """
    kind = f"{place}.vector" if place else ""
    name, value, again = ("", "", "")
    if kind:
        name, value, again = (", v", f", $8::real[]::{kind}", ", v = excluded.v")
    lead = f"""INSERT INTO gateway_cache_prompts (
        tenant, prompt, canonical, space, entry, alias, made, expires{name})
        SELECT $1, $2, $3, CASE WHEN cardinality($8::real[]) > 0 THEN $4 ELSE '' END, id, $6, clock_timestamp(),
            expires{value.replace("$8::real[]", "nullif($8::real[], '{}')")}
        FROM gateway_cache WHERE tenant = $1 AND id = $5 AND partition = $7 AND expires > now()
        ON CONFLICT (tenant, prompt) DO UPDATE SET canonical = excluded.canonical, space = excluded.space,
            entry = excluded.entry, alias = excluded.alias, made = excluded.made,
            expires = excluded.expires{again}"""  # noqa: S608
    if not kind:
        return VectorSql(lead)
    column = f"""ALTER TABLE gateway_cache_prompts ADD COLUMN IF NOT EXISTS v {kind};
        ALTER TABLE gateway_cache_prompts ALTER COLUMN v SET STORAGE MAIN"""
    nearest = f"""WITH near AS (SELECT entry, alias, 1 - (v OPERATOR({place}.<=>) $3::real[]::{kind}) AS similarity
            FROM gateway_cache_prompts WHERE tenant = $1 AND space = $2 AND expires > clock_timestamp()
            ORDER BY v OPERATOR({place}.<=>) $3::real[]::{kind} LIMIT $4)
        SELECT near.entry, near.alias, near.similarity, {_KEPT} FROM near
        JOIN gateway_cache AS e ON e.tenant = $1 AND e.id = near.entry ORDER BY near.similarity DESC"""  # noqa: S608
    return VectorSql(lead, column, nearest)
