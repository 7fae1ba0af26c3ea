-- When each accepted request of the last period came: never more than so many in any period.
--
-- join:    how many in a period
--          reply: d how many of those before count; d when the accepted ones came; dd when one more is accepted after the
--          last accepted one, and when a rejected one would be, in us; I2 unused
-- refund:  when the request was accepted, in us
--
-- State: runs of requests that came at once, the oldest first. A run: I7 when, in us; B how many. More are several runs.
-- Up to FEW runs are a string: the head, and the runs. More are a hash, so that little of it is read and written: field
-- "head" has the head, the oldest runs and the newest; those between are chunks of up to CHUNK bytes, in fields that are
-- numbered.
-- Head: B FORM, d how many requests, dd the oldest and the newest, d since, d retuned; d number of the first chunk, I4 how
-- many chunks; B how many runs are before them; B 1: a chunk was searched for; I2 c0 rate; and if so, d number of that chunk,
-- d how many requests are before it.
local FORM = 3
local HEAD, SHORTEST = "<BddddddI4BBI2c0", 89
local STATE = HEAD .. "c0c0c0"
local RUN, RUN_BYTES, MOST_IN_RUN = "<I7B", 8, 255
local CHUNK = 11 * RUN_BYTES
local FEW = 2 * CHUNK
local byte, sub, rep, abs, pcall = string.byte, string.sub, string.rep, math.abs, redis.pcall

local states = call("MGET", unpack(KEYS))

local key, is_hash, count, oldest, newest
-- Runs before the chunks: `text` from `from` up to `behind`. Runs behind them: the rest of `text`, and `added`.
local first_chunk, chunks, text, from, behind, added
-- Where a search may begin: the number of a chunk (0: none), and how many requests are before it.
local searched, earlier
-- The newest when the key was read; nil: it has to expire at another time in any case.
local newest_then

local function find(nth)
    key = KEYS[nth]
    text, added, is_hash = states[nth], "", false
    if not text then
        text = pcall("HGET", key, "head")
        is_hash = text ~= false
        if not text then
            count, oldest, newest, first_chunk, chunks, searched, earlier = 0, 0, 0, 1, 0, 0, 0
            text, from, behind, newest_then = "", 1, 1, nil
            rate, rate_since, retuned = own, since, 0
            return false
        end
    end
    if type(text) == "table" or #text < SHORTEST or byte(text) ~= FORM then
        return nil
    end
    local _, rate_then, since_then, retuned_then, runs, is_searched
    _, count, oldest, newest, since_then, retuned_then, first_chunk, chunks, runs, is_searched, rate_then, from =
        read(HEAD, text)
    searched, earlier = 0, 0
    if is_searched == 1 then
        searched, earlier, from = read("<dd", text, from)
    end
    follow(rate_then, since_then, retuned_then)
    behind, newest_then = from + runs * RUN_BYTES, newest
    return true
end

local function age()
end

-- The first chunk takes the place of the runs before it, which are gone.
local function refill()
    if chunks > 0 then
        local chunk = call("HGET", key, first_chunk)
        call("HDEL", key, first_chunk)
        text, from, behind = chunk .. sub(text, behind), 1, #chunk + 1
        first_chunk, chunks = first_chunk + 1, chunks - 1
        if first_chunk > searched then
            searched, earlier = 0, 0
        end
    end
end

local function forget_all()
    if is_hash then
        call("UNLINK", key)
    end
    is_hash, count, oldest, chunks = false, 0, 0, 0
    searched, earlier, newest_then = 0, 0, nil
    text, from, behind, added = "", 1, 1, ""
end

-- Takes the expired ones off.
local function adopt(before)
    if before then
        newest_then = nil
    end
    if count == 0 or oldest + rate.period > now then
        return
    end
    changed = true
    if newest + rate.period <= now then
        return forget_all()
    end
    repeat
        local many = byte(text, from + RUN_BYTES - 1)
        count, earlier, from = count - many, earlier - many, from + RUN_BYTES
        if from == behind then
            refill()
        end
        oldest = read(RUN, text, from)
    until oldest + rate.period > now
end

-- The head with its runs.
local function head()
    local packed, runs, is_searched, search = rate.packed, floor((behind - from) / RUN_BYTES), 0, ""
    if searched > 0 then
        is_searched, search = 1, pack("<dd", searched, earlier)
    end
    return pack(
        STATE, FORM, count, oldest, newest, rate_since, retuned, first_chunk, chunks, runs, is_searched, #packed, packed,
        search, sub(text, from), added
    )
end

-- Keeps some runs as the nth chunk.
local function put(nth, runs)
    call("HSET", key, first_chunk + nth - 1, runs)
end

-- How many bytes of runs are in the head.
local function in_head()
    return #text + 1 - from + #added
end

-- All runs that are in the head are in `text` then. Without chunks, all are before them.
local function gather()
    if chunks == 0 then
        behind = from + in_head()
    end
    behind = behind - from + 1
    text, from, added = sub(text, from) .. added, 1, ""
end

-- Makes chunks of the runs behind the chunks.
local function flush()
    local runs, before = sub(text, from) .. added, behind - from
    local at = before + 1
    while #runs + 1 - at >= CHUNK do
        chunks = chunks + 1
        put(chunks, sub(runs, at, at + CHUNK - 1))
        at = at + CHUNK
    end
    text, added, from, behind = sub(runs, 1, before) .. sub(runs, at), "", 1, before + 1
end

local function store(_, is_known)
    local bytes, needed = in_head(), max(newest + rate.period, now)
    if chunks == 0 then
        behind = from + min(bytes, CHUNK)
        if bytes <= FEW then
            if is_known then
                return call("SET", key, head(), "PX", lifetime(needed - now))
            end
            return call("SET", key, head(), "PX", lifetime(needed - now), "NX")
        end
    end
    if not is_known and not call("SET", key, "", "PX", lifetime(0), "NX") then
        return false
    end
    if not is_hash then
        call("UNLINK", key)
    end
    if bytes - (behind - from) >= CHUNK then
        flush()
    end
    call("HSET", key, "head", head())
    -- Not with each request: so the key lives up to an eighth of a period longer than it has to.
    local slack = rate.period / 8
    if not (is_hash and newest_then) or floor(newest / slack) ~= floor(newest_then / slack) then
        call("PEXPIRE", key, lifetime(needed + slack - now))
    end
    return true
end

-- The runs before the chunks (0), of a chunk (from 1 on), or behind the chunks.
local function part(nth)
    if nth == 0 then
        return sub(text, 1, behind - 1)
    elseif nth > chunks then
        return sub(text, behind)
    end
    return call("HGET", key, first_chunk + nth - 1)
end

local function total(runs)
    local many = 0
    for at = RUN_BYTES, #runs, RUN_BYTES do
        many = many + byte(runs, at)
    end
    return many
end

-- The nth of those that count, from 1 on.
local function moment(nth)
    if nth == 1 then
        return oldest
    end
    gather()
    -- From the nearest of what is known: `before` requests are before part `at`.
    local at, before = 0, 0
    if searched > 0 and abs(nth - earlier) < nth then
        at, before = searched - first_chunk + 1, earlier
    end
    if count - nth < abs(nth - before) then
        at, before = chunks + 2, count
    end
    local is_backward = nth <= before
    for passed = 0, chunks + 1 do
        at = is_backward and at - 1 or at
        local runs = part(at)
        local many = total(runs)
        before = is_backward and before - many or before
        if nth > before and nth <= before + many then
            if passed > 8 and at > 0 and at <= chunks then
                searched, earlier, changed = first_chunk + at - 1, before, true
            end
            local pos = 1 - RUN_BYTES
            repeat
                pos = pos + RUN_BYTES
                before = before + byte(runs, pos + RUN_BYTES - 1)
            until before >= nth
            return (read(RUN, runs, pos))
        end
        at, before = is_backward and at or at + 1, is_backward and before or before + many
    end
    return newest
end

local function add(many)
    local full = floor(many / MOST_IN_RUN)
    if full > 0 then
        added = added .. rep(pack(RUN, newest, MOST_IN_RUN), full)
    end
    if many > full * MOST_IN_RUN then
        added = added .. pack(RUN, newest, many - full * MOST_IN_RUN)
    end
end

local function join(many, cost, most)
    most = allowed(most)
    local limit, before = allowed_for(cost, most), count
    local accepted = fitting(many, cost, count, limit)
    local one_more_at, refused_until = now, now
    local came = now
    if accepted > 0 then
        -- A clock that was set back stays where it was.
        came = count > 0 and max(now, newest) or now
        oldest = count > 0 and oldest or came
        newest, count, changed = came, count + accepted * cost, true
        add(accepted * cost)
        if count >= most then
            one_more_at = moment(count + 1 - most) + rate.period
        end
    end
    if accepted < many then
        refused_until = moment(count + 1 - limit) + rate.period
    end
    return pack("<I4ddddI2", accepted, before, came, one_more_at, refused_until, 0)
end

-- Takes up to so many requests that came at a moment off some runs. Returns what is left of the runs, and how many there
-- are still to be taken.
local function without(runs, moment, many)
    for at = #runs + 1 - RUN_BYTES, 1, -RUN_BYTES do
        local came, there = read(RUN, runs, at)
        if came < moment or many == 0 then
            break
        elseif came == moment then
            local rest = there > many and pack(RUN, came, there - many) or ""
            runs = sub(runs, 1, at - 1) .. rest .. sub(runs, at + RUN_BYTES)
            many = max(many - there, 0)
        end
    end
    return runs, many
end

-- The last part that can have requests of a moment.
local function last_part(moment)
    if #text >= behind and read(RUN, text, behind) <= moment then
        return chunks + 1
    end
    local low, high = 0, chunks
    while low < high do
        local middle = ceil((low + high) / 2)
        if read(RUN, part(middle)) <= moment then
            low = middle
        else
            high = middle - 1
        end
    end
    return low
end

-- The chunks on the side with fewer of them close up to where one was.
local function remove(nth)
    local is_early = nth <= chunks / 2
    local last, step = is_early and 1 or chunks, is_early and -1 or 1
    for each = nth, last - step, step do
        put(each, part(each + step))
    end
    call("HDEL", key, first_chunk + last - 1)
    first_chunk, chunks = first_chunk + (is_early and 1 or 0), chunks - 1
    searched, earlier = 0, 0
end

local function replace(nth, runs)
    if nth == 0 then
        text, behind = runs .. sub(text, behind), #runs + 1
    elseif nth > chunks then
        text = sub(text, 1, behind - 1) .. runs
    elseif runs == "" then
        remove(nth)
    else
        put(nth, runs)
    end
end

local function refund(cost, moment)
    gather()
    local nth, left = last_part(moment), cost
    repeat
        local runs, rest, before = part(nth), nil, left
        rest, left = without(runs, moment, left)
        if rest ~= runs then
            if first_chunk + nth - 1 < searched then
                earlier = earlier - (before - left)
            end
            replace(nth, rest)
        end
        nth = nth - 1
    until left == 0 or nth < 0 or (runs ~= "" and read(RUN, runs) < moment)
    if left == cost then
        return false
    end
    count = count - (cost - left)
    if count == 0 then
        forget_all()
        return true
    end
    if from == behind then
        refill()
    end
    oldest = read(RUN, text, from)
    local last = #text >= behind and text or part(chunks)
    newest = read(RUN, last, #last + 1 - RUN_BYTES)
    return true
end
