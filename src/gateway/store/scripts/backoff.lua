-- What gateways have learned of an origin that they share: the lowest. A meeting point: it knows no rule of backing off.
--
-- KEYS[1]: the origin's. ARGV[1], packed, little-endian (`struct`):
--   d        the time in microseconds since the Unix epoch; -1: Redis's own clock. Others are for tests alone
--   c12      the name of what the gateway knows; zeros: it knows of nothing
--   d        the cost of the answers of the origin at this gateway since its last call
--   d        how long what is stored counts at least, in milliseconds
--   c12      the name of what is to be stored; zeros: nothing is
--   I2 c0    what is to be stored
--
-- It is stored if what is there is what the gateway knows: so nobody replaces what it has not seen.
--
-- The reply, packed as well:
--   d        now in us
--   B        1; 0: something else has this key, and nothing follows
--   d        when what is there was stored, in us
--   c12      its name; zeros: nothing is there
--   d        the cost of the answers at all gateways, where one counts for 1/e after REMEMBERED
--   d        since when these are counted, in us
--   I2 c0    what is there; empty if the gateway has just stored or knows it
--
-- State: B FORM; d when it was stored; c12 its name; d the answers, d as of when, d since when; I2 c0 the content.
local FORM = 2
-- In microseconds, as the time.
local REMEMBERED = 3000000
local read, pack, call = struct.unpack, struct.pack, redis.call
local NOTHING = string.rep("\0", 12)

local key = KEYS[1]
local now, known, added, lifetime, name, content = read("<dc12ddc12I2c0", ARGV[1])
if now < 0 then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
end

local at, there, answers, counted, since, has = now, NOTHING, 0, now, now, ""
local stored = call("GET", key)
if stored then
    if #stored < 47 or stored:byte() ~= FORM then
        return pack("<dB", now, 0)
    end
    local _
    _, at, there, answers, counted, since, has = read("<Bdc12dddI2c0", stored)
end

answers = answers * math.exp(-math.max(now - counted, 0) / REMEMBERED) + added
if name ~= NOTHING and known == there then
    at, there, has = now, name, content
end
local expires = string.format("%.0f", math.max(lifetime, 1))
local state = pack("<Bdc12dddI2c0", FORM, at, there, answers, now, since, #has, has)
if stored then
    call("SET", key, state, "PX", expires)
elseif not call("SET", key, state, "PX", expires, "NX") then
    return pack("<dB", now, 0)
end
local is_known = there == known or there == name
return pack("<dBdc12ddI2c0", now, 1, at, there, answers, since, is_known and 0 or #has, is_known and "" or has)
