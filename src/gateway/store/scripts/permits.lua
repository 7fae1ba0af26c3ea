-- The places of a pool, which gateways borrow: never more than its maximum are lent. One call is one gateway's.
--
-- KEYS[1]: the pool. ARGV[1], packed, little-endian (`struct`):
--   d        the time in microseconds since the Unix epoch; -1: Redis's own clock. Others are for tests alone
--   d d      since when, in microseconds on the gateways' clocks, the gateway's file has had its maximum; the maximum
--   d        how long the places of a gateway that vanished stay withheld after its lease, in microseconds
--   c8 d     which gateway it is, and the number of the call, which only goes up
--   d d      how many places it holds, after those that it gives back with this call; how many of them are in use
--   d        how many all may use together now, by what back-off has learned; infinite: all
--   d d d    how many it could use now, how many it would like to hold, the weight of what waits and runs there
--   d d      what it was told last of registrations and of members, see below; 0 if its lease has ended
--   B        1: it leaves, and gives all back
--
-- The reply, packed as well:
--   d B      now in us; 1: done, 2: a call of a higher number came before, 0: something else has this key.
--            If it is not 1, nothing follows
--   d d      how many places are lent to it from now on; how many it may keep
--   B        1: others wait for places, 2: few places are free, 4: nothing is lent while it is found out who holds what
--   d d      the maximum in force, and how many gateways there are
--   d d d d  places lent to them, in use there, withheld, and free
--   d d      registrations and members
--
-- A gateway starts requests on its places until its lease ends, by its own clock, from when it sent the call. After
-- that all that were lent to it count as in use for `orphan` more: it need not tell when it uses one. The number that
-- a gateway says it holds is taken as it is, so a lost reply lends nothing and a repeated call changes nothing.
--
-- Who gets how many: first what can be used now, in proportion to weights. If that is more than there is, what is left
-- of a division goes round: each gateway has a credit, the integral of its due less what it has, since it last got its
-- only place or lost it. Who has a place or two for certain has one more for a while. Who has only such a place keeps
-- none: it uses it for one turn, which it ends itself, and it goes to the one with the highest credit. Then comes what
-- they would like to hold.
--
-- What back-off has learned counts at all gateways within a second, but not where nothing runs. So the lowest number
-- counts of those that could use a place. It bounds what is lent beside what is withheld: else nothing might be lent for
-- as long as `orphan` is.
--
-- Lost writes: another replication ID, or no state, means that grants may be unknown here. Then nothing is lent for one
-- LEASE, and each gateway's word on what it holds is taken. Each also tells how many registrations it was told of last,
-- and how many members there were then. If not as many have come back as the latest of them says, what is not accounted
-- for stays withheld as if it had just been lent. So that all that are there know of a new one, it is lent nothing
-- until each of the others was told of its registration, or has had time to.
--
-- State: B FORM; d d maximum, since; d when it was last called; d when recovery ends, 0: none; d d places that are not
-- accounted for, and until when; d registrations; d d the latest that a gateway told of registrations and members;
-- I2 c0 replication ID; I2 gateways: c8 id, d call, d lent, d in use, d of all, d could use, d would like,
-- d weight, d orphan, d end of the lease, d due, d credit, d registrations that it was told of, d its own, d when,
-- B came back
local FORM = 1
local LEASE, SILENT, TURN, FORGET, PROBATION = 2400000, 200000, 500000, 200000, 1000000
local MOST_CREDIT, MOST_GATEWAYS = 60000000, 1024
local floor, max, min = math.floor, math.max, math.min
local read, pack, concat, call = struct.unpack, struct.pack, table.concat, redis.call
local RECORD = "<c8ddddddddddddddB"

local key = KEYS[1]
local now, since, most, orphan, id, number, held, in_use, of_all, usable, wish, weight, told, told_members,
    leaves = read("<ddddc8dddddddddB", ARGV[1])
local is_test = now >= 0
if not is_test then
    local time = call("TIME")
    now = time[1] * 1000000 + time[2]
end
local replication = string.match(call("INFO", "replication"), "master_replid:(%x+)")
    or string.match(call("INFO", "server"), "run_id:(%x+)")
    or ""

local last, recovers, lost, lost_until, births, heard, heard_members = now, 0, 0, 0, 0, 0, 0
local gateways, most_since = {}, since
local stored = call("GET", key)
if stored then
    if #stored < 77 or stored:byte() ~= FORM then
        return pack("<dB", now, 0)
    end
    local most_own, known, count, at = most, nil, nil, nil
    local _
    _, most, most_since, last, recovers, lost, lost_until, births, heard, heard_members, known, count, at =
        read("<BdddddddddI2c0I2", stored)
    for nth = 1, count do
        local g = {}
        g.id, g.number, g.lent, g.in_use, g.of_all, g.usable, g.wish, g.weight, g.orphan, g.ends, g.due, g.credit,
            g.told, g.birth, g.born, g.came, at =
            read(RECORD, stored, at)
        gateways[nth] = g
    end
    if most_own == most then
        most_since = max(most_since, since)
    elseif since > most_since then
        most, most_since = most_own, since
    end
    if known ~= replication then
        -- Who is known may have renewed its lease since then, and have been lent more.
        if recovers == 0 then
            heard, heard_members = births, #gateways + (lost > 0 and 1 or 0)
        end
        recovers = now + LEASE
        for _, g in ipairs(gateways) do
            g.ends, g.came = now + LEASE, 0
        end
    end
else
    recovers = now + LEASE
end
if last > now then
    -- The clock was set back: no lease is longer than one from now on.
    recovers, lost_until = min(recovers, now + LEASE), min(lost_until, now + LEASE + orphan)
    for _, g in ipairs(gateways) do
        g.ends, g.born = min(g.ends, now + LEASE), min(g.born, now)
    end
end

if recovers > 0 and now >= recovers then
    local came, all, longest = 0, 0, orphan
    for _, g in ipairs(gateways) do
        came, all, longest = came + (g.came == 2 and 1 or 0), all + g.lent, max(longest, g.orphan)
    end
    recovers, births = 0, births + 1
    lost, lost_until = 0, 0
    if came < heard_members then
        lost, lost_until = max(most - all, 0), now + longest
    end
end
local recovering = recovers > 0
if lost > 0 and now >= lost_until then
    lost = 0
end

-- Who is there. What was lent to those whose lease has ended is withheld, and then free.
local own
local others, withheld = {}, {}
for _, g in ipairs(gateways) do
    if g.id == id then
        own = g
    elseif g.ends > now then
        others[#others + 1] = g
    elseif g.lent > 0 and now < g.ends + g.orphan then
        withheld[#withheld + 1] = g
    end
end
if own and number <= own.number then
    return pack("<dB", now, 2)
end
if own and own.ends <= now and (own.lent == 0 or now >= own.ends + own.orphan) then
    own = nil
end
if not own then
    if #others + #withheld >= MOST_GATEWAYS then
        return pack("<dB", now, 2)
    end
    births = births + 1
    own = { id = id, lent = 0, credit = 0, due = 0, birth = births, born = now, came = 0 }
end
births = max(births, told)
if recovering then
    if told > heard or (told == heard and told_members < heard_members) then
        heard, heard_members = told, told_members
    end
    own.came = max(own.came, told > 0 and 2 or 1)
end

-- What it says that it holds; what it has in use cannot be refused.
local allowed = recovering and math.huge or own.lent + lost
local has = max(in_use, min(held, allowed))
if not recovering then
    lost = max(lost - max(has - own.lent, 0), 0)
end
if (has == 0) ~= (own.lent == 0) then
    own.credit = 0
end
own.number, own.lent, own.in_use, own.of_all = number, has, in_use, of_all
own.usable, own.wish, own.weight = usable, wish, weight
own.orphan, own.ends, own.keeps = orphan, now + LEASE, 0
local living = others
if leaves == 0 or has > 0 then
    living[#living + 1] = own
end

local lent, locked = 0, lost
for _, g in ipairs(living) do
    lent = lent + g.lent
end
for _, g in ipairs(withheld) do
    locked = locked + g.lent
end

-- What each is due of what can be used now. One that is silent wants no more than it has.
local room = most - locked
for _, g in ipairs(living) do
    if g == own or g.usable > 0 then
        room = min(room, g.of_all)
    end
end
local capacity, wanted = max(room, 0), 0
local passed = min(max(now - last, 0), 1000000)
for _, g in ipairs(living) do
    g.wants = g.ends - now < LEASE - SILENT and min(g.usable, g.lent) or g.usable
    g.would = g.ends - now < LEASE - SILENT and min(g.wish, g.lent) or g.wish
    wanted = wanted + g.wants
end
local scarce = wanted > capacity
local by_need = {}
for nth, g in ipairs(living) do
    -- As it was since the last call. Whoever has its due is soon owed nothing; a moment is no reason.
    g.credit = max(min(g.credit + passed * (g.due - g.lent), MOST_CREDIT), -MOST_CREDIT)
    if g.lent >= g.wants and (not scarce or g.lent <= g.due) then
        g.credit = g.credit * max(1 - passed / FORGET, 0)
    end
    by_need[nth], g.order = g, g.credit
end
-- Whoever calls, the order is the same: else each would find that it may keep what is left over.
table.sort(by_need, function(one, other)
    local of_one, of_other = one.wants * other.weight, other.wants * one.weight
    return of_one < of_other or (of_one == of_other and one.birth < other.birth)
end)
local left, weights = capacity, 0
for _, g in ipairs(by_need) do
    weights = weights + g.weight
end
local round, rest = {}, 0
for _, g in ipairs(by_need) do
    local share = weights > 0 and min(g.wants, left * g.weight / weights) or 0
    left, weights = left - share, weights - g.weight
    g.share, g.keeps = share, floor(share + 1e-6)
    if share < g.wants then
        rest = rest + share - g.keeps
        round[#round + 1] = g
    end
end
rest = floor(rest + 1e-6)
for _, g in ipairs(round) do
    g.whole = g.keeps
    g.order = g.credit + (g.whole > 0 and g.lent > g.whole and TURN or 0)
end
table.sort(round, function(one, other)
    return one.order > other.order or (one.order == other.order and one.birth < other.birth)
end)
local nexts = 0
for nth = 1, min(rest, #round) do
    local g = round[nth]
    g.keeps = g.whole + 1
    nexts = nexts + (g.whole == 0 and g.lent == 0 and 1 or 0)
end
-- Each only place goes on as soon as its turn ends: which one ends first is not known.
local starving = 0
for _, g in ipairs(round) do
    if g.whole == 0 and g.lent == 0 then
        starving = starving + 1
    elseif g.whole == 0 and nexts > room - lent then
        g.keeps = 0
    end
end
local waits = false
for _, g in ipairs(living) do
    g.due = scarce and g.share or max(g.lent, g.wants)
    waits = waits or (g ~= own and g.lent < g.keeps)
end

-- What is left, for those who come next: equal parts, and the rest to those who have it.
if not scarce then
    left = capacity - wanted
    table.sort(by_need, function(one, other)
        local of_one, of_other = one.would - one.wants, other.would - other.wants
        return of_one < of_other or (of_one == of_other and one.birth < other.birth)
    end)
    local many, over = #by_need, left
    for _, g in ipairs(by_need) do
        local spare = min(max(g.would - g.wants, 0), floor(left / many))
        g.keeps, left, many, over = g.keeps + spare, left - spare, many - 1, over - spare
    end
    for _, g in ipairs(by_need) do
        local kept = max(min(g.lent, g.would) - g.keeps, 0)
        kept = min(kept, over)
        g.keeps, over = g.keeps + kept, over - kept
    end
end

-- It gets what it is due, as far as it is there.
local knows_all = true
for _, g in ipairs(others) do
    if g ~= own and g.told < own.birth and now - own.born < PROBATION then
        knows_all = false
    end
end
local free = max(room - lent, 0)
if not recovering and knows_all and own.order then
    -- Those who wait without any come before what is only liked, and before those who have waited less.
    local waiting, ahead = 0, 0
    for _, g in ipairs(living) do
        if g ~= own and g.lent == 0 and g.wants > 0 and g.keeps > 0 then
            waiting, ahead = waiting + 1, ahead + (g.order > own.order and 1 or 0)
        end
    end
    local needed = max(min(own.keeps, own.wants) - own.lent, 0)
    local more = max(min(needed, free - ahead), 0)
    more = more + max(min(own.keeps - own.lent - needed, free - more - waiting), 0)
    if more > 0 and own.lent == 0 then
        own.credit = 0
        if own.whole == 0 and starving > 1 then
            -- It has the place for one turn.
            own.keeps, waits = 0, true
        end
    end
    own.lent, lent, free = own.lent + more, lent + more, free - more
end

-- More is lent than there is: a maximum was lowered, by back-off or the file, or one came back with what it has in use.
-- What ends is not used again.
local over = lent - room
if over > 0 then
    own.keeps = min(own.keeps, max(own.lent - over, 0))
end

local uses, of = 0, min(capacity + locked, most)
for _, g in ipairs(living) do
    uses = uses + g.in_use
end
if recovering then
    locked, free = locked + free, 0
end
local flags = (waits and 1 or 0) + ((scarce or free <= capacity / 10) and 2 or 0) + (recovering and 4 or 0)
local registered, members = births, #living + #withheld + (lost > 0 and 1 or 0)
if recovering then
    registered, members = heard, heard_members
end

own.told = recovering and 0 or births

local head = pack("<BdddddddddI2c0I2", FORM, most, most_since, now, recovers, lost, lost_until, births, heard,
    heard_members, #replication, replication, #living + #withheld)
local state, longest = { head }, orphan
for _, list in ipairs({ living, withheld }) do
    for _, g in ipairs(list) do
        longest = max(longest, g.orphan)
        state[#state + 1] = pack(RECORD, g.id, g.number, g.lent, g.in_use, g.of_all, g.usable, g.wish, g.weight,
            g.orphan, g.ends, g.due, g.credit, g.told, g.birth, g.born, g.came)
    end
end
local lifetime = 2 * (longest + LEASE) + 60000000
local expires = string.format("%.0f", min(floor(lifetime / 1000), 1e12))
if stored then
    call("SET", key, concat(state), "PX", expires)
elseif not call("SET", key, concat(state), "PX", expires, "NX") then
    return pack("<dB", now, 0)
end
return pack("<dBddBdddddddd", now, 1, own.lent, own.keeps, flags, of, #living, lent, uses, locked, free, registered,
    members)
