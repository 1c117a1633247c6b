#!lua
-- KEYS: since, leases, run, counters. ARGV: server, id, lease ms, note; packed, of each hold its start, end, limit
-- (NO_LIMIT: none) and base (-2: not lifted, -1: not given); packed, of each the amount.

local now = clock()
local counters, holds = {}, {}

for i = 1, #KEYS - 3 do
  local key = KEYS[3 + i]
  local from, till, limit, base = struct.unpack('<i8i8i8i8', ARGV[5], (i - 1) * 32 + 1)
  local amount = struct.unpack('<i8', ARGV[6], (i - 1) * 8 + 1)
  counters[key] = counters[key] or read(key)
  holds[i] = {
    key = key,
    counter = counters[key],
    from = from,
    till = till,
    limit = limit,
    lifted = base > -2,
    base = base >= 0 and base,
    amount = amount,
  }
end

local function verdict(refused, stale, missing)
  local used = {}
  for i, hold in ipairs(holds) do
    used[i] = hold.counter.spent + hold.counter.held
  end
  return { refused, stale, now, missing, used }
end

if redis.call('EXISTS', KEYS[3]) == 1 then
  return verdict(-1, 0, {})
end

for _, hold in ipairs(holds) do
  if hold.till > 0 and (now < hold.from * 1000 or now >= hold.till * 1000) then
    return verdict(-1, 1, {})
  end
end

-- Another server process may have lost writes: its memory is complete from now on only.
local kept = redis.call('HMGET', KEYS[1], 'at', 'server', 'seen')
local since, server = kept[1], ARGV[1]
if not since or (server ~= '' and kept[2] ~= server) then
  since = whole(now)
  redis.call('HSET', KEYS[1], 'at', since, 'server', server, 'seen', since)
  redis.call('PEXPIRE', KEYS[1], IDLE_MS)
elseif now - tonumber(kept[3]) > OVER_MS then
  redis.call('HSET', KEYS[1], 'seen', now)
  redis.call('PEXPIRE', KEYS[1], IDLE_MS)
end

local missing = {}
for i, hold in ipairs(holds) do
  local older = hold.from * 1000 < tonumber(since) and hold.counter.lifted ~= since
  if hold.lifted and not hold.base and older then
    missing[#missing + 1] = i - 1
  end
end
if #missing > 0 then
  return verdict(-1, 0, missing)
end

for _, hold in ipairs(holds) do
  if hold.lifted and hold.base then
    hold.counter.spent = math.max(hold.counter.spent, hold.base)
    hold.counter.lifted = since
    redis.call('HSET', hold.key, 's', hold.counter.spent, 'l', since)
    keep(hold.key, hold.till, now, hold.counter.is_new)
    hold.counter.is_new = false
  end
end

local added = {}
for i, hold in ipairs(holds) do
  added[hold.key] = (added[hold.key] or 0) + hold.amount
  local used = hold.counter.spent + hold.counter.held
  if hold.limit ~= NO_LIMIT and used + added[hold.key] > hold.limit then
    return verdict(i - 1, 0, {})
  end
end

local run = { ARGV[4] }
for i, hold in ipairs(holds) do
  hold.counter.held = redis.call('HINCRBY', hold.key, 'h', hold.amount)
  keep(hold.key, hold.till, now, hold.counter.is_new)
  hold.counter.is_new = false
  local at = (i - 1) * 6 + 1
  run[at + 1], run[at + 2], run[at + 3] = hold.key, hold.from, hold.till
  run[at + 4], run[at + 5], run[at + 6] = hold.limit, hold.lifted and 1 or 0, hold.amount
end
local lease = now + tonumber(ARGV[3])
redis.call('SET', KEYS[3], cmsgpack.pack(run), 'PX', tonumber(ARGV[3]) + IDLE_MS)
redis.call('ZADD', KEYS[2], lease, ARGV[2])
redis.call('PEXPIRE', KEYS[2], tonumber(ARGV[3]) + IDLE_MS)
return verdict(-1, 0, {})
