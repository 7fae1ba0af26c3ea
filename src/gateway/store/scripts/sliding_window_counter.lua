-- This window's count, and a part of the one before's: floor(current + previous * (1 - elapsed / period)).
--
-- join:    how many in a window
--          reply: d window; dd how many came in the one before it, and in it; d unused; I2 unused
-- refund:  when the request was accepted, in us
--
-- State: B FORM, d window, d previous, d current, d since, d retuned, I2 c0 rate.
local HEAD, SHORTEST = "<BdddddI2c0", 75

local window, previous, current

local function window_of(moment)
    return floor(moment / rate.period)
end

local function estimate()
    local elapsed = max(now - window * rate.period, 0)
    local before = muldiv(previous, rate.period - elapsed, rate.period)
    return current + before
end

local function fresh()
    window, previous, current = 0, 0, 0
end

local function load(stored)
    local _, rate_then, since_then, retuned_then
    _, window, previous, current, since_then, retuned_then, rate_then = read(HEAD, stored)
    follow(rate_then, since_then, retuned_then)
end

-- A clock that was set back stays in its window.
local function age()
    local present = window_of(now)
    if present == window + 1 then
        window, previous, current = present, current, 0
    elseif present > window then
        window, previous, current = present, 0, 0
    end
end

-- What counts now stays, in the windows of the new rate.
local function adopt(before)
    if before and before.period ~= rate.period then
        local elapsed = max(now - window * before.period, 0)
        local counting = current + muldiv(previous, before.period - elapsed, before.period)
        window, previous, current = window_of(now), 0, counting
    end
end

local function state()
    local packed = rate.packed
    local state = pack(HEAD, FORM, window, previous, current, rate_since, retuned, #packed, packed)
    local windows = current > 0 and 2 or 1
    return state, (window + windows) * rate.period - now
end

local function join(many, cost, most)
    local accepted = fitting(many, cost, estimate(), allowed_for(cost, allowed(most)))
    local told = pack("<I4ddddI2", accepted, window, previous, current, 0, 0)
    if accepted > 0 then
        current, changed = current + accepted * cost, true
    end
    return told
end

local function refund(cost, moment)
    local came = window_of(moment)
    if came == window and current > 0 then
        current = max(current - cost, 0)
        return true
    elseif came + 1 == window and previous > 0 then
        previous = max(previous - cost, 0)
        return true
    end
    return false
end
