#!lua
-- KEYS: receipt. ARGV: token, keep ms, fingerprint, done or lost, answer. Returns 0 when it is not the caller's.

local token = redis.call('HGET', KEYS[1], 'token')
if token and token ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'state', ARGV[4], 'token', ARGV[1], 'fingerprint', ARGV[3], 'answer', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
