-- The leaky bucket and the token bucket.
--
-- join:    burst; the level from which on one waits (-1: never); max_wait in us (-1: none)
--          reply: dd the level with the first one in requests and ticks; dd the level at the next place of the schedule,
--          and that place; I2 d... the free places that were taken before it
-- refund:  the place; -1 (of a token bucket): any
-- forget:  the place of the last who waits: what is behind it is forgotten; all, if its time has passed
-- retune:  nothing but the rate, for those who wait
--
-- State: B FORM, I2 how many free places, dd requests and ticks, d at, d next place, d since, d retuned, I2 c0 rate,
-- d... free places. The level is what a request at `at` would make; zero: drained. Accepted requests stand on the schedule
-- one request apart, at places that count up; while a place's time is to come, its level now is that of the next place
-- less one request for each place between them. A request that costs more takes as many places, one behind the other, and
-- its time is that of the first.
-- A place that is given back is free, and the next join takes the first free one; if it is the last, the schedule ends
-- before it. So no time is handed out twice, whoever gives it back. Places begin at the microsecond of the first request;
-- as no rate is above one a microsecond, no place comes again after the key has vanished.
local MOST_FREE = 256
local HEAD, SHORTEST = "<BI2ddddddI2c0", 85

local requests, ticks, at, next_place, free, frees

local function fresh()
    requests, ticks, at, next_place, free, frees = 0, 0, now, now, nil, 0
end

local function load(stored)
    local _, rate_then, since_then, retuned_then, behind
    _, frees, requests, ticks, at, next_place, since_then, retuned_then, rate_then, behind = read(HEAD, stored)
    follow(rate_then, since_then, retuned_then)
    free = nil
    if frees > 0 then
        free = { read("<" .. string.rep("d", frees), stored, behind) }
        free[frees + 1] = nil
    end
end

-- Whether a place's time is to come.
local function ahead(place)
    local level = requests - (next_place - place)
    return level > 0 or (level == 0 and ticks > 0)
end

local function take_free(index)
    frees = frees - 1
    return table.remove(free, index)
end

local function drop_free()
    while frees > 0 and not ahead(free[1]) do
        take_free(1)
    end
end

-- Leaks up to now. A clock that was set back leaks nothing, and goes on from there.
local function age()
    local leaked, rest = muldiv(max(now - at, 0), rate.leak, rate.request)
    requests, ticks = requests - leaked, ticks - rest
    if ticks < 0 then
        requests, ticks = requests - 1, ticks + rate.request
    end
    if requests < 0 then
        requests, ticks = 0, 0
    end
    if frees > 0 then
        drop_free()
    end
end

local function adopt(before)
    if before then
        ticks = muldiv(rate.request, ticks, before.request)
        drop_free()
    end
end

local function state()
    local places = frees > 0 and pack("<" .. string.rep("d", frees), unpack(free)) or ""
    local packed = rate.packed
    local head = pack(HEAD, FORM, frees, requests, ticks, now, next_place, rate_since, retuned, #packed, packed)
    return head .. places, (requests * rate.request + ticks) / rate.leak
end

local function take_off(cost)
    requests = requests - cost
    if requests < 0 then
        requests, ticks = 0, 0
    end
end

local function join(many, cost, burst, undelayed, patience)
    -- Up to which level they are accepted: neither above `burst`, nor later than `max_wait`.
    burst = burst - (cost - 1)
    local most, most_ticks = burst, 0
    if undelayed >= 0 and patience >= 0 then
        local waits, waits_ticks = muldiv(patience, rate.leak, rate.request)
        if undelayed + waits < burst then
            most, most_ticks = undelayed + waits, waits_ticks
        end
    end
    local level = requests - frees
    local room = most - level - (ticks > most_ticks and 1 or 0)
    local accepted = fitting(many, cost, 0, room + 1)
    local taken = cost == 1 and min(accepted, frees) or 0
    local told = pack("<I4ddddI2", accepted, level, ticks, requests, next_place, taken)
    for _ = 1, taken do
        told = told .. pack("<d", take_free(1))
    end
    if accepted > 0 then
        local places = (accepted - taken) * cost
        next_place, requests, changed = next_place + places, requests + places, true
    end
    return told
end

local function refund(cost, place)
    if place < 0 then
        local charged = requests > 0 or ticks > 0
        take_off(cost)
        return charged
    end
    local given = false
    if place + cost == next_place then
        given, next_place = true, place
        take_off(cost)
        while frees > 0 and free[frees] == next_place - 1 do
            next_place = take_free(frees)
            take_off(1)
        end
    elseif place < next_place then
        free = free or {}
        local index = 1
        for each = place, place + cost - 1 do
            while free[index] and free[index] < each do
                index = index + 1
            end
            if free[index] ~= each and ahead(each) and frees < MOST_FREE then
                table.insert(free, index, each)
                frees, given = frees + 1, true
            end
        end
    end
    return given
end

local function forget(cost, place)
    if place >= next_place or not ahead(place) then
        requests, ticks, frees = 0, 0, 0
        return true
    end
    requests, next_place = requests - (next_place - cost - place), place + cost
    while frees > 0 and free[frees] >= next_place do
        take_free(frees)
    end
    return true
end
