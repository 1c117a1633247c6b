#!lua flags=no-writes,allow-oom
-- KEYS: counters. Returns spent plus held of each.

local used = {}
for i, key in ipairs(KEYS) do
  local counter = read(key)
  used[i] = counter.spent + counter.held
end
return used
