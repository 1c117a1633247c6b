#!lua flags=allow-oom
-- KEYS: entries, pools, then entries that go for good. ARGV: prefix of what remembers that, '' for none; ms that it is
-- remembered. Returns how many there were.

local dropped = 0
for at = 3, #KEYS do
  local name = string.sub(KEYS[at], -32)
  dropped = dropped + redis.call('DEL', KEYS[at])
  redis.call('ZREM', KEYS[1], name)
  if ARGV[1] ~= '' then
    redis.call('SET', ARGV[1] .. name, 1, 'PX', ARGV[2])
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[2])
end
return dropped
