#!lua flags=allow-oom
-- KEYS: leases, runs. ARGV: ids of the runs. Returns what is packed in each, forgets leases without a run.

local found = {}
for i = 2, #KEYS do
  local packed = redis.call('GET', KEYS[i])
  if packed and packed ~= SETTLED then
    local run = cmsgpack.unpack(packed)
    for at = 1, #run - 1, 6 do
      run[at + 5] = run[at + 5] and 1 or 0
    end
    found[#found + 1] = { ARGV[i - 1], run }
  else
    redis.call('ZREM', KEYS[1], ARGV[i - 1])
  end
end
return found
