-- What all scripts share; put before each of them. State of one key, in one Redis key, which expires once forgetting it
-- changes no verdict.
--
-- KEYS[1]  the zone's key
-- ARGV[1]  "join", "refund", "forget" or "retune"
-- ARGV[2]  "": Redis's own clock; else the time in microseconds since the Unix epoch. For tests alone.
-- ARGV[3]  the gateway's rate: "ticks a request;ticks a microsecond;period in us;count in a window;as written"
-- ARGV[4]  since when, in microseconds on the gateways' clocks, its file has had this rate
--
-- Replies begin { accepted or given back (1 or 0), now in us, rate in force as written, since when in us (0: ever) }.
--
-- Numbers here are doubles: whole and exact below 2^53. Levels are whole requests and a rest in ticks, below one request,
-- so they are exact for every rate with less than 2^51 ticks a request; the gateway takes no others.
local EXACT = 9007199254740992
local fmod, floor, max, min = math.fmod, math.floor, math.max, math.min

local now
if ARGV[2] == "" then
    local time = redis.call("TIME")
    now = time[1] * 1000000 + time[2]
else
    now = tonumber(ARGV[2])
end

-- a * b / m rounded down, and its rest, exact where b <= m < 2^51 and the quotient is below 2^53.
local function muldiv(a, b, m)
    local product = a * b
    if product < EXACT then
        local rest = fmod(product, m)
        return (product - rest) / m, rest
    end
    -- Long division, of as many digits at once as stay exact.
    local base = m < 8796093022208 and 256 or 2
    local digits = {}
    while a > 0 do
        local digit = fmod(a, base)
        digits[#digits + 1] = digit
        a = (a - digit) / base
    end
    local quotient, rest = 0, 0
    for i = #digits, 1, -1 do
        local part = rest * base + b * digits[i]
        rest = fmod(part, m)
        quotient = quotient * base + (part - rest) / m
    end
    return quotient, rest
end

local function split(text, at)
    local fields = {}
    for field in string.gmatch(text, "[^" .. at .. "]+") do
        fields[#fields + 1] = field
    end
    return fields
end

local function pace(text)
    local fields = split(text, ";")
    return {
        text = text,
        request = tonumber(fields[1]),
        leak = tonumber(fields[2]),
        period = tonumber(fields[3]),
        count = tonumber(fields[4]),
        written = fields[5],
    }
end

-- The rate in force is the one that any gateway's file has had last. Returns the one before where this join changes it.
-- `force` is { rate, since, retuned }.
local function settle(force)
    local since = tonumber(ARGV[4])
    if force.rate.text == ARGV[3] then
        force.since = max(force.since, since)
    elseif since > force.since then
        local before = force.rate
        force.rate, force.since, force.retuned = pace(ARGV[3]), since, now
        return before
    end
    return nil
end

local function fresh()
    return { rate = pace(ARGV[3]), since = tonumber(ARGV[4]), retuned = 0 }
end

-- This many and more are allowed to what is charged whatever the level.
local ANY = 4294967296

-- A window's count is part of its rate: who has another rate than that in force goes by the count of the latter.
local function allowed(force, most)
    if most < ANY and force.rate.text ~= ARGV[3] and force.rate.count > 0 then
        return force.rate.count
    end
    return most
end

-- The count below which a request of this cost is accepted where so many are allowed.
local function allowed_for(cost, most)
    return max(most - (cost - 1), 1)
end

-- Milliseconds until something in microseconds from now is over. Where tests pass the time, it passes more slowly.
local function lifetime(micros)
    local millis = min(floor(micros / 1000) + 2, 1000000000000000)
    return string.format("%.0f", ARGV[2] == "" and millis or millis + 60000)
end

local function write(micros, ...)
    local fields = { ... }
    for i, field in ipairs(fields) do
        fields[i] = type(field) == "number" and string.format("%.0f", field) or field
    end
    redis.call("SET", KEYS[1], table.concat(fields, "|"), "PX", lifetime(micros))
end

local function answer(accepted, force, ...)
    return { accepted and 1 or 0, now, force.rate.written, force.retuned, ... }
end
