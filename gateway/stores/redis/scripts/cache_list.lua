#!lua flags=no-writes,allow-oom
-- KEYS: entries. ARGV: prefix of entries, first, last. Returns names and all of each but its answer and vector.

local found = {}
for at, name in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3])) do
  found[at] = { name, redis.call('HGET', ARGV[1] .. name, 'm') }
end
return found
