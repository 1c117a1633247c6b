#!lua flags=allow-oom
-- KEYS: negative entries, exact. ARGV: name, id, ms to live. Negative entries are a hash: name and id of each.

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if name_of(KEYS[2]) == ARGV[1] then
  redis.call('DEL', KEYS[2])
end
return 1
