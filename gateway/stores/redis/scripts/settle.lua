#!lua flags=allow-oom
-- KEYS: leases, run, counters. ARGV: id; of each hold the end of its window and what was really used.

local now = clock()
local packed = redis.call('GET', KEYS[2])
if packed == SETTLED then
  return 0
end

local touched = {}
if packed then
  local run = cmsgpack.unpack(packed)
  for at = 1, #run - 1, 6 do
    local key = run[at + 1]
    -- A counter that was lost meanwhile holds nothing of this run. (0 - x, because the text of -0 is no integer.)
    if redis.call('HINCRBY', key, 'h', whole(0 - run[at + 6])) < 0 then
      redis.call('HSET', key, 'h', 0)
    end
    touched[key] = run[at + 3]
  end
end
for i = 3, #KEYS do
  redis.call('HINCRBY', KEYS[i], 's', ARGV[(i - 3) * 2 + 3])
  touched[KEYS[i]] = tonumber(ARGV[(i - 3) * 2 + 2])
end

for key, till in pairs(touched) do
  keep(key, till, now)
  if till == 0 then
    local counter = read(key)
    if counter.spent + counter.held == 0 and not counter.lifted then
      redis.call('PEXPIRE', key, EMPTY_MS)
    end
  end
end
redis.call('SET', KEYS[2], SETTLED, 'PX', SETTLED_MS)
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
