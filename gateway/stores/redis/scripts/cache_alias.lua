#!lua
-- KEYS: marks, entry, exact, canonical (exact again for none), vectors. ARGV: the version of the marks that was
-- checked, name, pool of vectors, way; what was asked, vector. Returns as cache_put.

local version, marks = news(KEYS[1], ARGV[1])
if #marks > 0 then
  return { 0, version, marks }
end
local expires = redis.call('HGET', KEYS[2], 'x')
if not expires then
  return { -1, version, marks }
end
redis.call('SET', KEYS[3], ARGV[2] .. ARGV[5], 'PXAT', expires)
if KEYS[4] ~= KEYS[3] then
  redis.call('SET', KEYS[4], ARGV[2], 'PXAT', expires)
end
place(ARGV[4], KEYS[5], string.sub(KEYS[3], -32), ARGV[6], ARGV[3], expires)
return { 1, version, marks }
