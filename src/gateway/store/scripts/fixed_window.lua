-- So many in each period; periods begin at multiples of their length since the Unix epoch.
--
-- join:    how many in a window
--          reply: d window; d how many came in it before; dd unused; I2 unused
-- refund:  when the request was accepted, in us
--
-- State: B FORM, d window, d count, d since, d retuned, I2 c0 rate.
local HEAD, SHORTEST = "<BddddI2c0", 67

local window, count

local function window_of(moment)
    return floor(moment / rate.period)
end

local function fresh()
    window, count = 0, 0
end

local function load(stored)
    local _, rate_then, since_then, retuned_then
    _, window, count, since_then, retuned_then, rate_then = read(HEAD, stored)
    follow(rate_then, since_then, retuned_then)
end

-- A clock that was set back stays in its window.
local function age()
    local present = window_of(now)
    if present > window then
        window, count = present, 0
    end
end

local function adopt(before)
    if before then
        window = window_of(now)
    end
end

local function state()
    local packed = rate.packed
    local state = pack(HEAD, FORM, window, count, rate_since, retuned, #packed, packed)
    return state, (window + 1) * rate.period - now
end

local function join(many, cost, most)
    local accepted = fitting(many, cost, count, allowed_for(cost, allowed(most)))
    local told = pack("<I4ddddI2", accepted, window, count, 0, 0, 0)
    if accepted > 0 then
        count, changed = count + accepted * cost, true
    end
    return told
end

local function refund(cost, moment)
    local given = window == window_of(moment) and count > 0
    if given then
        count = max(count - cost, 0)
    end
    return given
end
