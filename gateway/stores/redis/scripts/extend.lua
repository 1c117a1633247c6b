#!lua
-- KEYS: run, counters. ARGV: the new amounts in the order of the run's holds.

local now = clock()
local packed = redis.call('GET', KEYS[1])
if not packed or packed == SETTLED then
  return { 0, 0, now, {}, {} }
end
local run = cmsgpack.unpack(packed)
local count = (#run - 1) / 6
if count ~= #ARGV then
  return { 0, 0, now, {}, {} }
end

local counters, steps, added, refused = {}, {}, {}, -1
for i = 1, count do
  local at = (i - 1) * 6 + 1
  local key, limit = run[at + 1], run[at + 4]
  counters[key] = counters[key] or read(key)
  steps[i] = math.max(0, tonumber(ARGV[i]) - run[at + 6])
  added[key] = (added[key] or 0) + steps[i]
  local used = counters[key].spent + counters[key].held
  if refused < 0 and limit ~= NO_LIMIT and steps[i] > 0 and used + added[key] > limit then
    refused = i - 1
  end
end

if refused < 0 then
  for i = 1, count do
    local at = (i - 1) * 6 + 1
    local key = run[at + 1]
    if steps[i] > 0 then
      counters[key].held = redis.call('HINCRBY', key, 'h', steps[i])
      keep(key, run[at + 3], now, counters[key].is_new)
      counters[key].is_new = false
      run[at + 6] = run[at + 6] + steps[i]
    end
  end
  redis.call('SET', KEYS[1], cmsgpack.pack(run), 'KEEPTTL')
end

local used = {}
for i = 1, count do
  local counter = counters[run[(i - 1) * 6 + 2]]
  used[i] = counter.spent + counter.held
end
return { refused, 0, now, {}, used }
