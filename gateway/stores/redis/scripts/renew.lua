#!lua flags=allow-oom
-- KEYS: leases. ARGV: lease ms, ids.

local lease = clock() + tonumber(ARGV[1])
for i = 2, #ARGV do
  redis.call('ZADD', KEYS[1], 'XX', lease, ARGV[i])
end
return 1
