#!lua
-- KEYS: marks, entry, gone, entries, pools, exact, canonical (exact again for none), vectors.
-- ARGV: the version of the marks that was checked, epoch, ms to live, name, partition, pool of vectors, way; all but
-- answer and vector, answer, vector. Returns 1, -1 when it may not be kept, 0 with the marks that are to be checked.

local version, marks = news(KEYS[1], ARGV[1])
if #marks > 0 then
  return { 0, version, marks }
end
if tonumber(ARGV[2]) > tonumber(version) or redis.call('EXISTS', KEYS[3]) == 1 then
  return { -1, version, marks }
end

local now, name = clock(), ARGV[4]
local kept = redis.call('HMGET', KEYS[2], 'c', 'x')
local created, expires = kept[1], kept[2]
if not created then
  created, expires = whole(now), whole(now + tonumber(ARGV[3]))
end
redis.call('HSET', KEYS[2], 'm', ARGV[8], 'a', ARGV[9], 'v', ARGV[10], 'c', created, 'x', expires)
redis.call('PEXPIREAT', KEYS[2], expires)
redis.call('SET', KEYS[6], name, 'PXAT', expires)
if KEYS[7] ~= KEYS[6] then
  redis.call('SET', KEYS[7], name, 'PXAT', expires)
end
place(ARGV[7], KEYS[8], string.sub(KEYS[6], -32), ARGV[10], ARGV[6], expires)

for key, member in pairs({ [KEYS[4]] = name, [KEYS[5]] = ARGV[5] }) do
  redis.call('ZADD', key, 'GT', expires, member)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now))
  redis.call('PEXPIRE', key, MARKS_MS)
end
redis.call('PEXPIRE', KEYS[1], MARKS_MS)
return { 1, version, marks }
