#!lua flags=no-writes,allow-oom
-- KEYS: entries, pools.

local now = whole(clock())
return { redis.call('ZCOUNT', KEYS[1], now, '+inf'), redis.call('ZCOUNT', KEYS[2], now, '+inf') }
