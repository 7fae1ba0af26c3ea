-- So many in each period; periods begin at multiples of their length since the Unix epoch.
--
-- join:    ARGV[5] how many in a window; ARGV[6] cost
--          reply: ..., window, how many came in it before
-- refund:  ARGV[5] when the request was accepted, in us; ARGV[6] cost
--
-- State: "window|count|rate|since|retuned".
local count, counted, force = 0, 0, nil
local stored = redis.call("GET", KEYS[1])
if stored then
    local fields = split(stored, "|")
    counted, count = tonumber(fields[1]), tonumber(fields[2])
    force = { rate = pace(fields[3]), since = tonumber(fields[4]), retuned = tonumber(fields[5]) }
else
    force = fresh()
end

local function window_of(moment)
    return floor(moment / force.rate.period)
end

if ARGV[1] == "refund" then
    -- What a window has counted that is over is nothing, although it expires a little later.
    local left = (counted + 1) * force.rate.period - now
    local given = left > 0 and counted == window_of(tonumber(ARGV[5])) and count > 0
    if given then
        count = max(count - tonumber(ARGV[6]), 0)
        write(left, counted, count, force.rate.text, force.since, force.retuned)
    end
    return answer(given, force)
end

-- A clock that was set back stays in its window.
local window = max(window_of(now), counted)
if window > counted then
    count = 0
end
local before = settle(force)
if before then
    window = window_of(now)
end
local cost = tonumber(ARGV[6])
local accepted = count < allowed_for(cost, allowed(force, tonumber(ARGV[5])))
local found = count
if accepted then
    count = count + cost
end
if accepted or before then
    write((window + 1) * force.rate.period - now, window, count, force.rate.text, force.since, force.retuned)
end
return answer(accepted, force, window, found)
