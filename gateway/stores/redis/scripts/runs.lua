#!lua flags=allow-oom
-- KEYS: leases, runs. ARGV: ids of the runs. Returns what is packed in each, forgets leases without a run.

local found = {}
for i = 2, #KEYS do
  local packed = redis.call('GET', KEYS[i])
  if packed and packed ~= SETTLED then
    found[#found + 1] = { ARGV[i - 1], cmsgpack.unpack(packed) }
  else
    redis.call('ZREM', KEYS[1], ARGV[i - 1])
  end
end
return found
