-- The leaky bucket and the token bucket.
--
-- join:    ARGV[5] burst; ARGV[6] the level from which on one waits (-1: never); ARGV[7] max_wait in us (-1: none);
--          ARGV[8] cost
--          reply: ..., level with it in requests and ticks, its time on the schedule (as a level) in both, its place
-- refund:  ARGV[5] the place; "" (of a token bucket): any; ARGV[6] cost
-- forget:  ARGV[5] the place of the last who waits, ARGV[6] its cost: what is behind it is forgotten; all, if its time
--          has passed
-- retune:  nothing but the rate, for those who wait
--
-- State: "requests|ticks|at|next place|free places|rate|since|retuned". The first two are the level that a request at `at`
-- would make; zero: drained. Accepted requests stand on the schedule one request apart, at places that count up; while a
-- place's time is to come, its level now is that of the next place less one request for each place between them.
-- A request that costs more takes as many places, one behind the other, and its time is that of the first.
-- A place that is given back is free, and the next join takes the first free one; if it is the last, the schedule ends
-- before it. So no time is handed out twice, whoever gives it back. Places begin at the microsecond of the first request;
-- as no rate is above one a microsecond, no place comes again after the key has vanished.
local MOST_FREE = 256

local requests, ticks, at, next_place, free, force = 0, 0, now, now, {}, nil
local stored = redis.call("GET", KEYS[1])
if stored then
    local fields = split(stored, "|")
    requests, ticks, at = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3])
    next_place = tonumber(fields[4])
    for _, place in ipairs(split(fields[5], ",")) do
        if place ~= "-" then
            free[#free + 1] = tonumber(place)
        end
    end
    force = { rate = pace(fields[6]), since = tonumber(fields[7]), retuned = tonumber(fields[8]) }
else
    force = fresh()
end

-- Leaks up to now. A clock that was set back leaks nothing, and goes on from there.
local leaked, rest = muldiv(max(now - at, 0), force.rate.leak, force.rate.request)
requests, ticks = requests - leaked, ticks - rest
if ticks < 0 then
    requests, ticks = requests - 1, ticks + force.rate.request
end
if requests < 0 then
    requests, ticks = 0, 0
end

local before = (ARGV[1] == "join" or ARGV[1] == "retune") and settle(force)
if before then
    ticks = muldiv(force.rate.request, ticks, before.request)
end

-- Whether a place's time is to come.
local function ahead(place)
    local level = requests - (next_place - place)
    return level > 0 or (level == 0 and ticks > 0)
end

while free[1] and not ahead(free[1]) do
    table.remove(free, 1)
end

local function save()
    local drained = (requests * force.rate.request + ticks) / force.rate.leak
    local places = {}
    for i, place in ipairs(free) do
        places[i] = string.format("%.0f", place)
    end
    write(drained, requests, ticks, now, next_place, #places > 0 and table.concat(places, ",") or "-",
        force.rate.text, force.since, force.retuned)
end

local function take_off(cost)
    requests = requests - cost
    if requests < 0 then
        requests, ticks = 0, 0
    end
end

if ARGV[1] == "refund" then
    if not stored then
        return answer(false, force)
    end
    local cost = tonumber(ARGV[6])
    if ARGV[5] == "" then
        local charged = requests > 0 or ticks > 0
        take_off(cost)
        save()
        return answer(charged, force)
    end
    local place = tonumber(ARGV[5])
    local given = false
    if place + cost == next_place then
        given, next_place = true, place
        take_off(cost)
        while free[#free] == next_place - 1 do
            next_place = table.remove(free)
            take_off(1)
        end
    elseif place < next_place then
        for each = place, place + cost - 1 do
            local index = 1
            while free[index] and free[index] < each do
                index = index + 1
            end
            if free[index] ~= each and ahead(each) and #free < MOST_FREE then
                table.insert(free, index, each)
                given = true
            end
        end
    end
    if given then
        save()
    end
    return answer(given, force)
end

if ARGV[1] == "forget" then
    local place, cost = tonumber(ARGV[5]), tonumber(ARGV[6])
    if not stored or place >= next_place or not ahead(place) then
        redis.call("DEL", KEYS[1])
        return answer(true, force)
    end
    requests, next_place = requests - (next_place - cost - place), place + cost
    while free[#free] and free[#free] >= next_place do
        free[#free] = nil
    end
    save()
    return answer(true, force)
end

if ARGV[1] == "retune" then
    if stored and before then
        save()
    end
    return answer(false, force)
end

-- Up to which level it is accepted: neither above `burst`, nor later than `max_wait`.
local burst, undelayed, patience = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local cost = tonumber(ARGV[8])
burst = burst - (cost - 1)
local most, most_ticks = burst, 0
if undelayed >= 0 and patience >= 0 then
    local waits, waits_ticks = muldiv(patience, force.rate.leak, force.rate.request)
    if undelayed + waits < burst then
        most, most_ticks = undelayed + waits, waits_ticks
    end
end

local level = requests - #free
local accepted = level < most or (level == most and ticks <= most_ticks)
local place, stands = next_place, requests
if accepted then
    if cost == 1 and free[1] then
        place = table.remove(free, 1)
        stands = requests - (next_place - place)
    else
        next_place, requests = next_place + cost, requests + cost
    end
end
local reply = answer(accepted, force, level, ticks, stands, ticks, place)
if accepted or before then
    save()
end
return reply
