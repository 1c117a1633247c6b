#!lua flags=allow-oom
-- KEYS: marks, exact, canonical, negative entries. ARGV: the version of the marks that is known, prefix of entries.
-- Returns the version, the marks where another was known, and the entry of each key.

local version, marks = news(KEYS[1], ARGV[1])

local function led(prompt)
  local name = name_of(prompt)
  if not name or redis.call('HEXISTS', KEYS[4], name) == 1 then
    return false
  end
  return entry(ARGV[2] .. name)
end

return { version, marks, led(KEYS[2]), led(KEYS[3]) }
