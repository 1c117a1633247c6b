#!lua flags=allow-oom
-- KEYS: leases, run, counters. ARGV: id; packed, of each hold the end of its window and what was
-- really used.

local now = clock()
local packed = redis.call('GET', KEYS[2])
if packed == SETTLED then
  return 0
end

local ends, is_new = {}, {}
if packed then
  local run = cmsgpack.unpack(packed)
  for at = 1, #run - 1, 6 do
    local key, held = run[at + 1], run[at + 6]
    ends[key] = run[at + 3]
    -- A counter that was lost meanwhile holds nothing of this run. (0 - x, because the text of -0 is no integer.)
    local left = redis.call('HINCRBY', key, 'h', 0 - held)
    if left < 0 then
      redis.call('HSET', key, 'h', 0)
    end
    is_new[key] = is_new[key] or left < 0 or held == 0
  end
end
for i = 3, #KEYS do
  local till, actual = struct.unpack('<i8i8', ARGV[2], (i - 3) * 16 + 1)
  redis.call('HINCRBY', KEYS[i], 's', actual)
  if ends[KEYS[i]] == nil then
    ends[KEYS[i]], is_new[KEYS[i]] = till, true
  end
end

for key, till in pairs(ends) do
  keep(key, till, now, is_new[key])
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
