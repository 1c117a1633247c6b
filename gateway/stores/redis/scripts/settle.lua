#!lua flags=allow-oom
-- KEYS: leases, then of each run itself and its counters. ARGV: of each run its id; packed, how many counters it
-- has, and of each the end of its window and what was really used. Returns 1 for each run, 0 for one that was settled.

local now = clock()

local function settle(run_key, at, id, packed)
  local kept = redis.call('GET', run_key)
  local count = struct.unpack('<i8', packed)
  if kept == SETTLED then
    return 0, count
  end

  local ends, is_new = {}, {}
  if kept then
    local run = cmsgpack.unpack(kept)
    for place = 1, #run - 1, 6 do
      local key, held = run[place + 1], run[place + 6]
      ends[key] = run[place + 3]
      -- A counter that was lost meanwhile holds nothing of this run. (0 - x, because the text of -0 is no integer.)
      local left = redis.call('HINCRBY', key, 'h', 0 - held)
      if left < 0 then
        redis.call('HSET', key, 'h', 0)
      end
      is_new[key] = is_new[key] or left < 0 or held == 0
    end
  end
  for place = 1, count do
    local key = KEYS[at + place]
    local till, actual = struct.unpack('<i8i8', packed, place * 16 - 7)
    redis.call('HINCRBY', key, 's', actual)
    if ends[key] == nil then
      ends[key], is_new[key] = till, true
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
  redis.call('SET', run_key, SETTLED, 'PX', SETTLED_MS)
  redis.call('ZREM', KEYS[1], id)
  return 1, count
end

local settled, at = {}, 2
for place = 1, #ARGV, 2 do
  local count
  settled[#settled + 1], count = settle(KEYS[at], at, ARGV[place], ARGV[place + 1])
  at = at + 1 + count
end
return settled
