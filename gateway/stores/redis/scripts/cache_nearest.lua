#!lua flags=allow-oom
-- KEYS: marks, the set of vectors or the prefix of documents. ARGV: the version of the marks that is known, prefixes of
-- entries and prompts, most rows, how many to look at, vector; with '' in its place the names that a search found.
-- Returns the version, the marks where another was known, and of each prompt that was near its name, its score in the
-- set, what an alias asked, the name of its entry, then the fields of the entry where it comes for the first time. What
-- leads nowhere any more is forgotten.

local version, marks = news(KEYS[1], ARGV[1])
local near, step = {}, 1
local is_set = ARGV[6] ~= ''
if is_set then
  near = redis.call('VSIM', KEYS[2], 'FP32', ARGV[6], 'WITHSCORES', 'COUNT', ARGV[5])
  step = 2
else
  for at = 7, #ARGV do
    near[#near + 1] = ARGV[at]
  end
end

local rows, seen, most = {}, {}, tonumber(ARGV[4])
for at = 1, #near, step do
  local prompt = near[at]
  local name, asked = name_of(ARGV[3] .. prompt)
  local kept = name and (seen[name] and {} or entry(ARGV[2] .. name))
  if kept then
    seen[name] = true
    rows[#rows + 1] = { prompt, is_set and near[at + 1] or '', asked, name, unpack(kept, 1, 5) }
  elseif is_set then
    redis.call('VREM', KEYS[2], prompt)
  else
    redis.call('DEL', KEYS[2] .. prompt)
  end
  if #rows == most then
    break
  end
end
return { version, marks, rows, #near / step }
