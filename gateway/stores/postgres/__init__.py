"""Keys and ledger in Postgres; the only importer of asyncpg."""
