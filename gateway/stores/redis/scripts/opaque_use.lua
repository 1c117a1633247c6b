#!lua
-- KEYS: items. ARGV: time to live in ms. Returns the values, false where there is none; what is there lives on.

local values = redis.call('MGET', unpack(KEYS))
for at, key in ipairs(KEYS) do
  if values[at] then
    redis.call('PEXPIRE', key, ARGV[1], 'GT')
  end
end
return values
