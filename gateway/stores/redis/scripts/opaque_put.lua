#!lua
-- KEYS: items. ARGV: time to live in ms, then the value of each item. All or none is kept.

for at, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[at + 1], 'PX', ARGV[1])
end
return 1
