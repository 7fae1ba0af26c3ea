-- The grid of slots of an origin, which several gateways share. Slots are one interval apart, so whoever has which, the
-- origin gets one even stream. One call is one gateway's claim.
--
-- KEYS[1]: the grid. ARGV[1], packed, little-endian (`struct`):
--   d        the time in microseconds since the Unix epoch; -1: Redis's own clock. Others are for tests alone
--   d        since when, in microseconds on the gateways' clocks, the gateway's file has had its rate
--   I2 c0    its rate: dddd ticks a request, ticks a microsecond, and two numbers that are not used; as written
--   c8       which gateway it is
--   d        how many slots it wants
--   d        which part of its turns it may take, above 0 and at most 1: less while it backs off
--   d        how long an answer takes to it, in microseconds: slots that are sooner are of no use to it
--   d d d    the generation of keys that it knows (0: none), the number of this claim, and of the last one that was answered
--   B        how many classes have requests that wait there, and each of them:
--   I4 d d   its name's hash, its weight, the weights of its keys that wait
--   I2       how many keys have changed, and each of them:
--   c8 I4 B  what its name hashes to, its class's hash, its weight; 0: it waits no longer
--
-- The reply, packed as well:
--   d        now in us
--   d        how many gateways were heard of lately
--   d        the gateway's part of the rate
--   d        the first free slot, in us
--   d        when another claim would be granted more, in us
--   B        1: the gateway's rate is in force; 2: another one; 0: something else has this key, and nothing follows
--   I2 c0    the rate in force as written, if it is another one
--   I4       how many slots of the rate each slot here stands for
--   I2       how many slots were granted, and each of them:
--   d        its time in us
--   B        how many classes were told, and for each of them:
--   d        which part of the class waits at this gateway
--   B d      1: the changes of keys were noted; 0: the gateway has to tell all its keys; their generation
--   I2       how many bytes of news of its keys, and each of them:
--   c8 I2    the key, at how many gateways it waits; 0: it has to tell all its keys again, as news were lost
--
-- Whose turn it is: W is the weight of all gateways that wait, w that of one. Its turns are W / w slots apart, so the
-- turns of all fill the grid. It is granted its turns up to SPAN ahead; what it skips stays free for the others. What is
-- still free NEAR its time goes to whoever asks: nobody whose turn it was has come. NEAR is longer by a round trip for who
-- is away, and SPAN for all by as much as for the one that is furthest. A turn that comes late is not made up but for one.
-- A part that has changed counts from the last turn on: else who had a small part would wait for a turn that is far.
--
-- Weights are those of classes first: each class that has waiters anywhere has its part of the rate, and in it each
-- gateway has the part that its keys have of all keys of the class. A key that waits at several counts in parts.
--
-- State, the field g of a hash: B FORM; d time of a slot and d its index; d index of the first slot that was never granted or
-- skipped; d since; d generation of keys; d when the hash expires; I2 c0 rate; I2 d... indices of free slots before it;
-- I2 gateways: c8 id, d heard of, d its lead, d its last turn (an index; -inf: it had none), d number of its last claim,
-- I2 its number, I4 how many keys it has told, I2 how many bytes of news it was sent, I2 c0 news, B I4 d d d d ...
local FORM = 2
local SPAN, NEAR = 50000, 15000
-- After this time without a claim, what waits at a gateway does not count; then the gateway does not.
local SILENT, GONE = 200000, 5000000
-- No slot was granted so far ahead: a claim's span and the longest lead are not half of it.
local MOST_AHEAD = 1000000
local MOST_GATEWAYS, MOST_FREE, MOST_IN_SPAN = 1024, 512, 250
local ceil, max, min = math.ceil, math.max, math.min

local key, args = KEYS[1], ARGV[1]
local now, since, rate, id, wanted, part_taken, lead, known, claim, answered, count, pos = read("<ddI2c0c8ddddddB", args)
local is_test = now >= 0
if not is_test then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
end
lead = min(lead, 100000)

local claimed = {}
for nth = 1, count do
    local class, weight, waiting
    class, weight, waiting, pos = read("<I4dd", args, pos)
    claimed[nth] = { class, weight, waiting, 0, 0 }
end
local changes
changes, pos = read("<I2", args, pos)

-- How long a slot is here, and how many of the rate it stands for: fast grids are shared in pieces.
local function slots_of(packed)
    local request, leak = read("<dd", packed)
    local interval = request / leak
    local pieces = max(1, ceil(SPAN / interval / MOST_IN_SPAN))
    return interval * pieces, pieces
end

local base, base_index, next_index, rate_since, in_force, free, gateways = now, 0, 0, since, rate, {}, {}
local generation, expires = now, -math.huge
local stored = call("HGET", key, "g")
if stored and (#stored < 53 or stored:byte() ~= FORM) or not stored and call("HLEN", key) > 0 then
    return pack("<dddddB", now, 1, 1, now, now, 0)
end
if stored then
    local _, frees, many, at
    _, base, base_index, next_index, rate_since, generation, expires, in_force, frees, at = read("<BddddddI2c0I2", stored)
    for nth = 1, frees do
        free[nth], at = read("<d", stored, at)
    end
    many, at = read("<I2", stored, at)
    for nth = 1, many do
        local all, classes, from = {}, 0, at
        local gateway = { classes = all }
        gateway.id, gateway.heard, gateway.lead, gateway.turn, gateway.claim, gateway.number, gateway.keys, gateway.sent,
            gateway.news, classes, at = read("<c8ddddI2I4I2I2c0B", stored, at)
        for row = 1, classes do
            local class = {}
            class[1], class[2], class[3], class[4], class[5], at = read("<I4dddd", stored, at)
            all[row] = class
        end
        -- What is not changed is written as it was.
        gateway.raw = stored:sub(from, at - 1)
        gateways[nth] = gateway
    end
end

local slot, pieces = slots_of(in_force)
if in_force == rate then
    rate_since = max(rate_since, since)
elseif since > rate_since then
    -- One new interval behind the last slot that was granted.
    local last = base + (next_index - 1 - base_index) * slot
    slot, pieces = slots_of(rate)
    in_force, rate_since, free = rate, since, {}
    base, base_index = last + slot, next_index
end

local function time(index)
    return base + (index - base_index) * slot
end

if time(next_index - 1) > now + MOST_AHEAD then
    -- The clock was set back.
    base, base_index, free = now + slot, next_index, {}
end

-- Who is there: those that were heard of, and this one. A clock that was set back makes nobody old.
local living, oldest, own, forgets = {}, nil, nil, false
for _, gateway in ipairs(gateways) do
    if gateway.id == id then
        own = gateway
    else
        if now - gateway.heard >= SILENT and #gateway.classes > 0 then
            forgets = forgets or gateway.keys > 0
            gateway.classes, gateway.raw = {}, nil
        end
        if now - gateway.heard < GONE then
            if gateway.heard > now then
                gateway.heard, gateway.raw = now, nil
            end
            living[#living + 1] = gateway
            if not oldest or gateway.heard < living[oldest].heard then
                oldest = #living
            end
        end
    end
end
if #living >= MOST_GATEWAYS then
    forgets = forgets or living[oldest].keys > 0
    table.remove(living, oldest)
end
if not own then
    own = { id = id, claim = 0, number = lowest_free_number(living), keys = 0, sent = 0, news = "", classes = {} }
    known = 0
end
living[#living + 1] = own
own.heard, own.lead, own.raw = now, lead, nil
renew_classes(own, claimed)

-- The keys that it tells. A claim that comes behind a later one tells nothing new.
local accepted, set, gone = false, {}, {}
if known ~= generation or answered > own.claim then
    forgets = forgets or own.keys > 0
    own.claim, own.sent, own.news = claim, 0, ""
elseif claim > own.claim and not forgets then
    if answered == own.claim then
        own.news, own.sent = own.news:sub(own.sent + 1), 0
    end
    set, gone = note_changes(key, living, own, args, pos, changes)
    own.claim, own.sent, accepted = claim, #own.news, true
end
if forgets then
    forget_keys(living)
    generation, own.claim = max(now, generation + 1), max(own.claim, claim)
    call("UNLINK", key)
end

-- This gateway's part of what all that wait are due.
local keys, weights, all_weights, furthest = {}, {}, 0, 0
for _, gateway in ipairs(living) do
    local waits = false
    for _, class in ipairs(gateway.classes) do
        local name, weight = class[1], class[2]
        if weight > 0 then
            waits = true
            keys[name] = (keys[name] or 0) + counted(class)
            if weight > (weights[name] or 0) then
                all_weights = all_weights + weight - (weights[name] or 0)
                weights[name] = weight
            end
        end
    end
    if waits then
        furthest = max(furthest, gateway.lead)
    end
end
local part, parts = 0, {}
for nth = 1, count do
    local class = own.classes[nth]
    local of_class = counted(class) / keys[class[1]]
    part = part + weights[class[1]] / all_weights * of_class
    parts[nth] = pack("<d", of_class)
end
if part <= 0 then
    part = 1
end
part = min(part, 1)
local stride = 1 / (part * part_taken)

-- The first slot that is of use, and what of the free ones has passed.
local start = now + lead
local before
if wanted > 0 and time(next_index) <= start then
    -- Nothing is granted ahead: the grid begins anew, and this slot is behind the last one. Turns to come are as much
    -- nearer as time has passed.
    before = { base, base_index, next_index, free }
    next_index = next_index + floor((start - time(next_index)) / slot)
    base, base_index, free = start, next_index, {}
end
local function index_at(moment)
    return ceil((moment - base) / slot - 1e-6) + base_index
end
local passed = 0
local first = index_at(min(start, now))
while free[passed + 1] and free[passed + 1] < first do
    passed = passed + 1
end
local current = index_at(start)
local left = {}
for nth = passed + 1, #free do
    left[#left + 1] = free[nth]
end
free = left

local granted, taken, at = {}, {}, 1
-- Takes the first free slot from this index on, up to the last one of `most`; they only go up.
local function take(index, most)
    while free[at] and (taken[at] or free[at] < index) do
        at = at + 1
    end
    if free[at] then
        if free[at] > most then
            return nil
        end
        taken[at] = true
        return free[at]
    end
    local new = max(next_index, index)
    if new > most then
        return nil
    end
    for skipped = max(next_index, current), new - 1 do
        free[#free + 1] = skipped
        at = #free + 1
    end
    next_index = new + 1
    return new
end

local function first_free(index)
    for nth = 1, #free do
        if not taken[nth] and free[nth] >= index then
            return free[nth]
        end
    end
    return max(next_index, index)
end

local units = min(ceil(wanted / pieces), 1024)
local begin = first_free(current)
local last_turn = own.turn or -math.huge
local turn = begin
if last_turn > -math.huge then
    turn = max(last_turn + stride, begin - stride)
end
-- What nobody took in time, and turns that are near.
local near = floor((start + NEAR + 2 * lead - base) / slot + 1e-6) + base_index
while units > 0 do
    local index = take(part_taken < 1 and max(current, floor(turn)) or current, near)
    if not index then
        break
    end
    granted[#granted + 1] = index
    units = units - 1
    if index >= floor(turn) then
        last_turn, turn = turn, turn + stride
    end
end
-- Turns to come.
local span = SPAN + 3 * furthest - lead
local most = floor((start + span - base) / slot + 1e-6) + base_index
while units > 0 and #free < MOST_FREE do
    local index = take(max(current, floor(turn)), most)
    if not index then
        break
    end
    granted[#granted + 1] = index
    units = units - 1
    last_turn, turn = turn, turn + stride
end
own.turn = last_turn

-- When there is more: when the next turn is within the span, or what is free then is near.
local open = first_free(current)
local coming = max(first_free(max(current, floor(turn))), open)
local again = time(coming) - span / 2 - lead
if part_taken >= 1 then
    again = min(again, time(open) - NEAR - lead)
end

local reply = { pack("<ddddd", now, #living, part, time(open), again) }
if before and #granted == 0 then
    -- It does not begin yet, or parts of slots that have passed would not count.
    base, base_index, next_index, free = before[1], before[2], before[3], before[4]
end

-- It counts until the first slot that was never granted, and as long as gateways do.
local lifetime = min(max(time(next_index) - now, 0) + 2 * GONE + (is_test and 60000000 or 0), 1e18)
local renews = forgets or now + lifetime > expires
if renews then
    expires = now + lifetime + GONE
end

local head = {
    pack("<BddddddI2c0", FORM, base, base_index, next_index, rate_since, generation, expires, #in_force, in_force),
}
local kept = {}
for nth = 1, #free do
    if not taken[nth] then
        kept[#kept + 1] = pack("<d", free[nth])
    end
end
head[#head + 1] = pack("<I2", #kept)
head[#head + 1] = concat(kept)
head[#head + 1] = pack("<I2", #living)
for _, gateway in ipairs(living) do
    if gateway.raw then
        head[#head + 1] = gateway.raw
    else
        head[#head + 1] = pack("<c8ddddI2I4I2I2c0B", gateway.id, gateway.heard, gateway.lead, gateway.turn, gateway.claim,
            gateway.number, gateway.keys, gateway.sent, #gateway.news, gateway.news, #gateway.classes)
        for _, class in ipairs(gateway.classes) do
            head[#head + 1] = pack("<I4dddd", class[1], class[2], class[3], class[4], class[5])
        end
    end
end
call("HSET", key, "g", concat(head), unpack(set))
if #gone > 0 then
    call("HDEL", key, unpack(gone))
end
if renews then
    call("PEXPIRE", key, string.format("%.0f", ceil((expires - now) / 1000)))
end

if in_force == rate then
    reply[2] = pack("<B", 1)
else
    local written = in_force:sub(33)
    reply[2] = pack("<BI2c0", 2, #written, written)
end
reply[3] = pack("<I4I2", pieces, #granted)
for _, index in ipairs(granted) do
    reply[#reply + 1] = pack("<d", time(index))
end
reply[#reply + 1] = pack("<B", #parts) .. concat(parts)
reply[#reply + 1] = pack("<BdI2c0", accepted and 1 or 0, generation, #own.news, own.news)
return concat(reply)
