-- Does what is asked of each key; put behind each of the scripts, which have
--
-- find(nth)        loads the state of a key: true, false if it is not known, nil if something else has the key
-- age()            what the time since then changes
-- adopt(before)    what a new rate changes, or the time under it; `before` is nil where the rate is no new one
-- join(...)        and refund(cost, place or moment): return how many, and what the reply says further
-- forget(cost, place): leaky buckets alone
-- store(key, is_known): writes the state: false if something else has the key
local ENTRY = 32
local reply, last = { pack("<d", now) }, 1
for nth, key in ipairs(KEYS) do
    local entries
    entries, pos = read("<I2", args, pos)
    local is_known = find(nth)
    local told = "\0"
    if is_known == nil then
        pos = pos + entries * ENTRY
    else
        changed = false
        age()
        if asked == JOIN or asked == RETUNE then
            adopt(settle())
        end
        if rate == own then
            told = pack("<Bd", 1, retuned)
        else
            local written = rate.packed:sub(33)
            told = pack("<BdI2c0", 2, retuned, #written, written)
        end
        for _ = 1, entries do
            local many, cost, first, second, third
            many, cost, first, second, third, pos = read("<I4I4ddd", args, pos)
            if asked == JOIN then
                told = told .. join(many, cost, first, second, third)
            elseif asked ~= RETUNE then
                local done = is_known and (asked == REFUND and refund or forget)(cost, first)
                changed = changed or done
                told = told .. pack("<I4", done and 1 or 0)
            else
                told = told .. pack("<I4", 0)
            end
        end
        if changed and (is_known or asked == JOIN) and not store(key, is_known) then
            told = "\0"
        end
    end
    last = last + 1
    reply[last] = told
end
return concat(reply)
