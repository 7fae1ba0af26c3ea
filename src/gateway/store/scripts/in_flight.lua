-- The places of keys whose running requests are bounded over all gateways. One call is one gateway's, for many keys.
--
-- KEYS: one for each key. ARGV[1], packed, little-endian (`struct`):
--   d        the time in microseconds since the Unix epoch; -1: Redis's own clock. Others are for tests alone
--   c8 d     which gateway it is; for how long its places count if it does not call again, in microseconds
--   and for each key
--   d        the number of the call, which only goes up over all keys of the gateway
--   d d d    how many places it has, whatever is known here; how many it would use; how many it gives back
--   d        1: requests wait there, so it stands in line
--   d        the most of all gateways together
--
-- The reply, packed as well:
--   d        now in us
--   and for each key
--   B        1: done, 2: a later call came before or there are too many gateways, 0: something else has this key. If it
--            is not 1, nothing follows
--   d d d B  how many places the gateway has from now on, how many the others have, how many of these are of gateways that
--            have not called for GONE: nobody knows whether they use them; 1: others wait
--
-- Never takes away what it has granted, but for what is given back or not wanted any more. So a gateway may use what it
-- was granted before its next call is answered.
--
-- A gateway where requests wait stands in line, until it has not called for SILENT. One place is kept for each gateway
-- that is before another in the line; while several wait, each gets one place and goes to the end. Those whose own
-- maximum leaves no room are passed over.
--
-- State: B FORM, and for each gateway: c8 id, d call, d places, d since when it waits (0: it does not), d its maximum,
-- d when it called, d when it is forgotten. One without places stays for GONE, so that a call that comes late does nothing.
local FORM = 1
local SILENT, GONE, MOST_GATEWAYS = 250000, 3000000, 1024
local floor, max, min = math.floor, math.max, math.min
local read, pack, concat, call, pcall = struct.unpack, struct.pack, table.concat, redis.call, redis.pcall
local RECORD, LENGTH = "<c8dddddd", 56

local args = ARGV[1]
local now, id, kept, pos = read("<dc8d", args)
local is_test = now >= 0
if not is_test then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
end
local reply = { pack("<d", now) }

-- The gateways that are not forgotten, and the one that calls; nil if something else has the key.
local function load(stored)
    local gateways, own = {}, nil
    if not stored then
        return gateways, own
    end
    if type(stored) ~= "string" or stored:byte() ~= FORM or (#stored - 1) % LENGTH ~= 0 then
        return nil
    end
    for at = 2, #stored, LENGTH do
        local g = {}
        g.id, g.number, g.places, g.since, g.most, g.seen, g.ends = read(RECORD, stored, at)
        if g.seen > now then
            -- The clock was set back.
            g.ends, g.seen, g.since = now + (g.ends - g.seen), now, min(g.since, now)
        end
        if g.ends > now then
            gateways[#gateways + 1] = g
            if g.id == id then
                own = g
            end
        end
    end
    return gateways, own
end

local function done(own, others, withheld, others_wait)
    return pack("<BdddB", 1, own.places, others, withheld, others_wait and 1 or 0)
end

local function write(key, gateways)
    local state, ends = { pack("<B", FORM) }, now
    for _, g in ipairs(gateways) do
        state[#state + 1] = pack(RECORD, g.id, g.number, g.places, g.since, g.most, g.seen, g.ends)
        ends = max(ends, g.ends)
    end
    local millis = floor((ends - now) / 1000) + 2
    call("SET", key, concat(state), "PX", string.format("%.0f", is_test and millis + 60000 or millis))
end

local function serve(key, number, has, wanted, yields, waits, most)
    local gateways, own = load(pcall("GET", key))
    if not gateways then
        return pack("<B", 0)
    end
    if own and number <= own.number then
        return pack("<B", 2)
    end
    if not own then
        if #gateways >= MOST_GATEWAYS then
            return pack("<B", 2)
        end
        own = { id = id, places = 0, since = 0 }
        gateways[#gateways + 1] = own
    end
    local places = max(has, min(wanted, own.places - yields))
    local others, withheld, before, others_wait = 0, 0, 0, false
    local since = own.since > 0 and yields == 0 and own.since or now
    for _, g in ipairs(gateways) do
        if g ~= own then
            others = others + g.places
            withheld = withheld + (now - g.seen >= GONE and g.places or 0)
        end
    end
    local all = others + places
    for _, g in ipairs(gateways) do
        if g ~= own and g.since > 0 and now - g.seen < SILENT then
            others_wait = others_wait or all <= g.most
            before = before + (all < g.most and g.since < since and 1 or 0)
        end
    end
    local more = min(wanted - places, most - others - places - before)
    if others_wait then
        more = min(more, 1)
    end
    more = max(more, 0)
    own.number, own.places, own.most, own.seen = number, places + more, most, now
    own.ends = now + (own.places > 0 and kept or GONE)
    own.since = 0
    if waits > 0 and own.places < wanted then
        own.since = more > 0 and now or since
    end
    write(key, gateways)
    return done(own, others, withheld, others_wait)
end

for nth, key in ipairs(KEYS) do
    local number, has, wanted, yields, waits, most
    number, has, wanted, yields, waits, most, pos = read("<dddddd", args, pos)
    reply[nth + 1] = serve(key, number, has, wanted, yields, waits, most)
end
return concat(reply)
