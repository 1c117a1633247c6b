#!lua flags=allow-oom
-- KEYS: lease. ARGV: token. Another holder's lease is left alone.

if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return 1
