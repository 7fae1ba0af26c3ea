-- This window's count, and a part of the one before's: floor(current + previous * (1 - elapsed / period)).
--
-- join:    ARGV[5] how many in a window; ARGV[6] cost
--          reply: ..., window, how many came in the one before it, and in it
-- refund:  ARGV[5] when the request was accepted, in us; ARGV[6] cost
--
-- State: "window|previous|current|rate|since|retuned".
local counted, previous, current, force = 0, 0, 0, nil
local stored = redis.call("GET", KEYS[1])
if stored then
    local fields = split(stored, "|")
    counted, previous, current = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3])
    force = { rate = pace(fields[4]), since = tonumber(fields[5]), retuned = tonumber(fields[6]) }
else
    force = fresh()
end

local function window_of(moment)
    return floor(moment / force.rate.period)
end

local function estimate(window)
    local elapsed = max(now - window * force.rate.period, 0)
    local before = muldiv(previous, force.rate.period - elapsed, force.rate.period)
    return current + before
end

local function save(window)
    local windows = current > 0 and 2 or 1
    write((window + windows) * force.rate.period - now, window, previous, current, force.rate.text, force.since,
        force.retuned)
end

-- A clock that was set back stays in its window.
local window = max(window_of(now), counted)
if window == counted + 1 then
    previous, current = current, 0
elseif window > counted then
    previous, current = 0, 0
end

if ARGV[1] == "refund" then
    local came = window_of(tonumber(ARGV[5]))
    local given, cost = false, tonumber(ARGV[6])
    if came == window and current > 0 then
        given, current = true, max(current - cost, 0)
    elseif came + 1 == window and previous > 0 then
        given, previous = true, max(previous - cost, 0)
    end
    if given then
        save(window)
    end
    return answer(given, force)
end

local counting = estimate(window)
local before = settle(force)
if before and before.period ~= force.rate.period then
    window, previous, current = window_of(now), 0, counting
end
local cost = tonumber(ARGV[6])
local accepted = estimate(window) < allowed_for(cost, allowed(force, tonumber(ARGV[5])))
local reply = answer(accepted, force, window, previous, current)
if accepted then
    current = current + cost
end
if accepted or before then
    save(window)
end
return reply
