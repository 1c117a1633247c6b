-- Put after the first line of every other script.
-- A counter is a hash: s spent, h held, l up to which memory the ledger's sum is in s.
-- A run is a string: 's' once it was settled, before that a packed list of its note and six fields for each hold.

local OVER_MS, IDLE_MS, EMPTY_MS, SETTLED_MS = 86400000, 3456000000, 3600000, 3600000
local SETTLED = 's'
local NO_LIMIT = -2 ^ 62

local function whole(number)
  return string.format('%.0f', number)
end

local function clock()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function read(key)
  local kept = redis.call('HMGET', key, 's', 'h', 'l')
  return {
    spent = tonumber(kept[1] or 0),
    held = tonumber(kept[2] or 0),
    lifted = kept[3],
    is_new = not (kept[1] or kept[2]),
  }
end

-- A window's counter lives a day longer than the window, which is said once; one without end as long as it is used.
local function keep(key, window_end, now, is_new)
  if window_end == 0 then
    redis.call('PEXPIRE', key, IDLE_MS)
  elseif is_new then
    redis.call('PEXPIREAT', key, window_end * 1000 + OVER_MS)
  end
end
