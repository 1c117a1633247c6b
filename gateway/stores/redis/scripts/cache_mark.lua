#!lua flags=allow-oom
-- KEYS: marks. ARGV: selector, most marks, ms after which a mark forbids nothing any more. Returns the marks.

local now = clock()
local before = news(KEYS[1], '')
local version = math.max(tonumber(before) + 1, now)
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then
  local old = redis.call('HGETALL', KEYS[1])
  for at = 1, #old, 2 do
    if tonumber(old[at + 1]) < now - tonumber(ARGV[3]) then
      redis.call('HDEL', KEYS[1], old[at])
    end
  end
end
local selector = ARGV[1]
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then
  redis.call('DEL', KEYS[1])
  selector = '*'
end
redis.call('HSET', KEYS[1], '', whole(version), selector, whole(version))
redis.call('PEXPIRE', KEYS[1], MARKS_MS)
return redis.call('HGETALL', KEYS[1])
