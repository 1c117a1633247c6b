#!lua
-- KEYS: receipt. ARGV: token, fingerprint, lease ms. Returns what is known of it: state, fingerprint, answer.
-- A receipt is a hash: state, token of the holder, fingerprint, until (end of the lease), answer. A claimed one
-- expires with its lease, any other a day after its last change.

local kept = redis.call('HMGET', KEYS[1], 'state', 'token', 'fingerprint', 'until')
local state, token, fingerprint, till = kept[1], kept[2], kept[3], kept[4]
if not state then
  redis.call('HSET', KEYS[1], 'state', 'claimed', 'token', ARGV[1], 'fingerprint', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return { 'new', ARGV[2], '' }
end
if state == 'done' then
  return { 'done', fingerprint, redis.call('HGET', KEYS[1], 'answer') }
end
if state == 'lost' then
  return { 'lost', fingerprint, '' }
end
if token == ARGV[1] then
  return { 'new', fingerprint, '' }
end
if state == 'calling' and clock() >= tonumber(till) then
  return { 'lost', fingerprint, '' }
end
return { 'running', fingerprint, '' }
