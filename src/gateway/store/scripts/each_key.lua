-- Does what is asked of each key; put behind each of the scripts, which have
--
-- find(nth)        loads the state of a key: true, false if it is not known, nil if something else has the key
-- age()            what the time since then changes
-- adopt(before)    what a new rate changes, or the time under it; `before` is nil where the rate is no new one
-- join(...)        and refund(cost, place or moment): return how many, and what the reply says further
-- forget(cost, place): leaky buckets alone
-- store(key, is_known): writes the state: false if something else has the key
local ENTRY = 32
-- What most replies say: the gateway's rate has been in force ever.
local EVER = pack("<Bd", 1, 0)
local reply, last = { pack("<d", now) }, 1
for nth, key in ipairs(KEYS) do
    local entries
    entries, pos = read("<I2", args, pos)
    local is_known = find(nth)
    local before = last
    last = last + 1
    if is_known == nil then
        reply[last] = "\0"
        pos = pos + entries * ENTRY
    else
        changed = false
        age()
        if asked == JOIN or asked == RETUNE then
            adopt(settle())
        end
        if rate == own then
            reply[last] = retuned == 0 and EVER or pack("<Bd", 1, retuned)
        else
            local written = rate.packed:sub(33)
            reply[last] = pack("<BdI2c0", 2, retuned, #written, written)
        end
        for _ = 1, entries do
            local many, cost, first, second, third
            many, cost, first, second, third, pos = read("<I4I4ddd", args, pos)
            last = last + 1
            if asked == JOIN then
                reply[last] = join(many, cost, first, second, third)
            elseif asked == RETUNE then
                reply[last] = pack("<I4", 0)
            else
                local done = is_known and (asked == REFUND and refund or forget)(cost, first)
                changed = changed or done
                reply[last] = pack("<I4", done and 1 or 0)
            end
        end
        if changed and (is_known or asked == JOIN) and not store(key, is_known) then
            for told = before + 1, last do
                reply[told] = ""
            end
            reply[last] = "\0"
        end
    end
end
return concat(reply)
