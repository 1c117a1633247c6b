#!lua flags=no-writes,allow-oom
-- KEYS: leases. ARGV: limit. Returns the ids whose lease has ended, the oldest first.

return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', clock(), 'LIMIT', 0, ARGV[1])
