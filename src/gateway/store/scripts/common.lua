-- What all scripts share; put before each of them. The state of a key is in one Redis key, which expires once forgetting
-- it changes no verdict. One call is for many keys, and for many joins of each: a key is read once and written once.
--
-- ARGV[1], packed, little-endian (`struct`):
--   B        what is asked: JOIN, REFUND, FORGET or RETUNE
--   d        the time in microseconds since the Unix epoch; -1: Redis's own clock. Others are for tests alone
--   d        since when, in microseconds on the gateways' clocks, its file has had this rate
--   I2 c0    the gateway's rate: dddd ticks a request, ticks a microsecond, period in us, count in a window; as written
--   and for each key
--   I2       how many entries, and each of them: what is asked, in order
--   I4 I4    how many equal ones, cost
--   ddd      as the algorithm has it
--
-- The reply, packed as well:
--   d        now in us
--   and for each key
--   B        1: the gateway's rate is in force; 2: another one; 0: something else has this key, and nothing follows
--   d        since when the rate is in force in us (0: ever)
--   I2 c0    the rate in force as written, if it is another one
--   I4       for each entry: how many were accepted or given back, from the first; what follows is the algorithm's
--
-- Numbers here are doubles: whole and exact below 2^53. Levels are whole requests and a rest in ticks, below one request,
-- so they are exact for every rate with less than 2^51 ticks a request; the gateway takes no others.
local JOIN, REFUND, FORGET, RETUNE = 1, 2, 3, 4
local EXACT = 9007199254740992
-- The first byte of each state, but for algorithms that have a form of their own. Another form has another name in Redis,
-- too.
local FORM = 2
local ceil, floor, fmod, max, min = math.ceil, math.floor, math.fmod, math.max, math.min
local read, pack, format, concat, call = struct.unpack, struct.pack, string.format, table.concat, redis.call

local args = ARGV[1]
local asked, now, since, packed, pos = read("<BddI2c0", args)
local is_test = now >= 0
if not is_test then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
end

local function unpacked(rate)
    local request, leak, period, count = read("<dddd", rate)
    return { packed = rate, request = request, leak = leak, period = period, count = count }
end

local own = unpacked(packed)

-- Of the key at hand: the rate in force, since when some file has had it, since when it is in force, and whether the
-- state has to be written.
local rate, rate_since, retuned, changed

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

-- What a state says of the rate.
local function follow(rate_then, since_then, retuned_then)
    rate = rate_then == packed and own or unpacked(rate_then)
    rate_since, retuned = since_then, retuned_then
end

-- The rate in force is the one that any gateway's file has had last. Returns the one before where this changes it.
local function settle()
    if rate == own then
        rate_since = max(rate_since, since)
    elseif since > rate_since then
        local before = rate
        rate, rate_since, retuned, changed = own, since, now, true
        return before
    end
    return nil
end

-- This many and more are allowed to what is charged whatever the level.
local ANY = 4294967296

-- A window's count is part of its rate: who has another rate than that in force goes by the count of the latter.
local function allowed(most)
    if most < ANY and rate ~= own and rate.count > 0 then
        return rate.count
    end
    return most
end

-- The count below which a request of this cost is accepted where so many are allowed.
local function allowed_for(cost, most)
    return max(most - (cost - 1), 1)
end

-- How many of so many equal requests are accepted where so much is counted.
local function fitting(many, cost, counted, most)
    if counted >= most then
        return 0
    end
    return min(many, ceil((most - counted) / cost))
end

-- Milliseconds until something in microseconds from now is over. Where tests pass the time, it passes more slowly.
local function lifetime(micros)
    local millis = min(floor(micros / 1000) + 2, 1000000000000000)
    return format("%.0f", is_test and millis + 60000 or millis)
end
