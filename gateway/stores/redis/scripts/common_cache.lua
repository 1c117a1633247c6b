-- Put after common.lua in the scripts of the cache, whose names begin with cache_.
-- Marks are a hash: '' the epoch of the last delete, and the selector of each delete with its epoch. Where there are
-- none, memory was lost or never was: what may be left of before is over.
-- An entry is a hash: m all but the rest, a answer, v vector, c and x when it was created and expires, in ms. A prompt
-- is a string: the name of its entry, 32 bytes, then, for an alias, what it asked.

local MARKS_MS = 3456000000

local function news(key, known)
  local version = redis.call('HGET', key, '')
  if not version then
    version = whole(clock())
    redis.call('HSET', key, '', version, '*', version)
    redis.call('PEXPIRE', key, MARKS_MS)
  end
  if version == known then
    return version, {}
  end
  return version, redis.call('HGETALL', key)
end

local function entry(key)
  local kept = redis.call('HMGET', key, 'm', 'a', 'v', 'c', 'x')
  return kept[1] and kept
end

local function name_of(prompt)
  local lead = redis.call('GET', prompt)
  return lead and string.sub(lead, 1, 32), lead and string.sub(lead, 33)
end

-- A set of vectors lives as long as the last of them; a document of the search dies by itself.
local function place(way, key, name, vector, pool, expires)
  if way == 'sets' then
    redis.pcall('VADD', key, 'FP32', vector, name, 'NOQUANT')
    if redis.call('PEXPIRETIME', key) < tonumber(expires) then
      redis.call('PEXPIREAT', key, expires)
    end
  elseif way == 'search' then
    redis.call('HSET', key, 'pool', pool, 'v', vector)
    redis.call('PEXPIREAT', key, expires)
  end
end
