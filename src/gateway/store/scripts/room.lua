-- A waiting room that several gateways share: src/limit/waiting_room, with the same rules. One call is what visitors asked
-- of one gateway since its last call.
--
-- KEYS, all in one slot of a cluster: the counters (hash), those inside (sorted set: number, when it asked), those who are
-- called (sorted set: place, until when), the polls of the first in line (hash: place, when it asks again).
-- ARGV[1], JSON. Times are in milliseconds since the Unix epoch, for the precision of cjson:
--   at        the time, for tests; else Redis's own clock
--   since     since when, on the gateways' clocks, the limits are as follows: the latest ones are in force
--   sessions  most visitors inside at once
--   interval, idle, claim, opens (0: open), paused
--   life      what the room is called if it has no name yet
--   drawn, called  what the gateway knows: after a loss of writes no number is given twice
--   lotteries how many lotteries the gateway knows: places are those after them
--   keys      of the order of a lottery that begins now, as texts
--   ops       in order: {"d"} draws; {"p", place, number, again} is there, and may be called; again: the
--             answer to the last time was lost; {"t", number, sure, ago} asks, and was
--             inside as the gateway is `sure` or not, so long ago; {"u", place, after} will ask again after so long; {"c", count} calls by
--             hand; {"e"} sends all away; {"m", name, count} numbers that were drawn while Redis was out; {"r", name}
--             the numbers of such
-- The reply, JSON: now, life, drawn, called, emptied, inside, pending, open, counts, limits in force, lotteries (each
-- first, count, keys), and for each op: d: {number, 1 if inside}; p: when it was called, or 0; t: 1 if inside; c, e: how
-- many; m, r: the number before the first one, or -1. If the gateway does not know all lotteries, results is missing, and
-- nothing was done.
local MOST_CALLED, REMEMBERED, MOST_IN_CALL, CATCH_UP, KEPT = 65536, 65536, 1000, 1000, 2592000000
-- After a loss of writes so many numbers are left out, because other gateways may have given them; and for so long those
-- who have them may ask again, so that they are called.
local LEFT_OUT, SETTLING = 1000, 10000
local counters, inside, calls, polls = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local arg = cjson.decode(ARGV[1])
local now = arg.at
if not now then
    local time = call("TIME")
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text(number) return string.format("%.17g", number) end

local NAMES = { "drawn", "called", "emptied", "open", "next", "idle", "walked_in", "drew", "calls", "came", "lost", "left",
    "sent_away", "since", "limits", "life", "lotteries", "gap" }
local found = call("HMGET", counters, unpack(NAMES))
local state = {}
for nth, name in ipairs(NAMES) do
    state[name] = found[nth] or false
end
for nth = 1, 14 do
    local name = NAMES[nth]
    state[name] = tonumber(state[name] or 0)
end
local is_new = not state.life
state.life = state.life or arg.life
if is_new then
    state.open, state.idle, state.next = 1, 1, now
end
local gap = state.gap and cjson.decode(state.gap)
if state.drawn < arg.drawn then
    gap = { arg.drawn, arg.drawn + LEFT_OUT, now + SETTLING }
    state.drawn, state.gap = gap[2], cjson.encode(gap)
end
state.called = math.max(state.called, arg.called)
state.called = math.min(state.called, state.drawn)
local limits
if not state.limits or arg.since > state.since then
    limits = { sessions = arg.sessions, interval = arg.interval, idle = arg.idle, claim = arg.claim, opens = arg.opens,
        paused = arg.paused }
    state.limits, state.since = cjson.encode(limits), arg.since
    state.next = math.min(state.next, now + limits.interval)
    if limits.opens > now then state.open = 0 end
else
    limits = cjson.decode(state.limits)
end
local lotteries = state.lotteries and cjson.decode(state.lotteries) or {}

if state.open == 0 and limits.opens <= now then
    state.open, state.idle, state.next = 1, 1, math.max(state.next, now)
    local count = state.drawn - state.called
    if count > 1 and #lotteries < 8 then
        lotteries[#lotteries + 1] = { state.called, count, arg.keys }
        state.lotteries = cjson.encode(lotteries)
        -- They were told by numbers: nobody knows who is told what now, but all within the longest time.
        call("UNLINK", polls)
    end
end

state.left = state.left + call("ZREMRANGEBYSCORE", inside, "-inf", text(now - limits.idle))
state.lost = state.lost + call("ZREMRANGEBYSCORE", calls, "-inf", text(now))
local count_inside, count_called = call("ZCARD", inside), call("ZCARD", calls)

local function has_place()
    return count_called < MOST_CALLED and count_inside + count_called < limits.sessions
end

-- Whether nobody is known to have the next number.
local function is_unsure()
    local place = state.called + 1
    return gap and place > gap[1] and place <= gap[2] and not call("HGET", polls, text(place))
end

local function call_next()
    local place, unsure = state.called + 1, is_unsure()
    state.called = place
    if unsure then return end
    local due = tonumber(call("HGET", polls, text(place)) or 0)
    call("HDEL", polls, text(place))
    call("ZADD", calls, text(math.max(now, due) + limits.claim), text(place))
    count_called, state.calls = count_called + 1, state.calls + 1
    local earliest = state.idle == 1 and now or now - CATCH_UP
    state.next, state.idle = math.max(state.next, earliest) + limits.interval, 0
end

local function advance()
    for _ = 1, MOST_IN_CALL + LEFT_OUT do
        local nobody = state.open == 0 or limits.paused or state.called == state.drawn or not has_place()
        if nobody or (gap and now < gap[3] and is_unsure()) then
            state.idle = 1
            return
        end
        if state.next > now then return end
        call_next()
    end
end

local function begin(number, seen)
    if call("ZADD", inside, text(seen), text(number)) == 1 then count_inside = count_inside + 1 end
end

local ops = {}
function ops.d()
    state.drawn = state.drawn + 1
    if state.called + 1 == state.drawn and state.open == 1 and not limits.paused and has_place() and state.next <= now then
        state.called, state.walked_in = state.drawn, state.walked_in + 1
        begin(state.drawn, now)
        state.next, state.idle = math.max(state.next, now) + limits.interval, 1
        return { state.drawn, 1 }
    end
    state.drew = state.drew + 1
    return { state.drawn, 0 }
end
function ops.p(place, number, again)
    local till = call("ZSCORE", calls, text(place))
    if not till then
        return again and call("ZSCORE", inside, text(number)) and now or 0
    end
    call("ZREM", calls, text(place))
    count_called, state.came = count_called - 1, state.came + 1
    begin(number, now)
    return math.max(0, tonumber(till) - limits.claim)
end
function ops.t(number, sure, ago)
    if not call("ZSCORE", inside, text(number)) then
        -- Only after a loss of writes is it gone for Redis alone.
        if not sure or number > state.drawn or ago >= limits.idle then return 0 end
    end
    begin(number, now - ago)
    return 1
end
function ops.u(place, after)
    if place > state.called and place <= state.called + REMEMBERED then
        call("HSET", polls, text(place), text(now + after))
    end
    return 0
end
function ops.c(wanted)
    local done = 0
    while done < wanted and done < MOST_IN_CALL and state.open == 1 and state.called < state.drawn and has_place() do
        call_next()
        done = done + 1
    end
    return done
end
function ops.e()
    local count = state.drawn - state.called + count_called
    state.called, state.emptied, state.sent_away = state.drawn, state.drawn, state.sent_away + count
    call("UNLINK", calls, polls)
    count_called = 0
    return count
end
function ops.m(name, count)
    local known = call("HGET", counters, "mark:" .. name)
    if known then return tonumber(known) end
    local first = state.drawn
    state.drawn, state.drew = state.drawn + count, state.drew + count
    call("HSET", counters, "mark:" .. name, text(first))
    return first
end
function ops.r(name)
    return tonumber(call("HGET", counters, "mark:" .. name) or -1)
end

advance()
local results
if #lotteries == arg.lotteries then
    results = {}
    for nth, op in ipairs(arg.ops) do
        results[nth] = ops[op[1]](op[2], op[3], op[4])
        advance()
    end
end

local written = {}
for _, name in ipairs(NAMES) do
    local value = state[name]
    if value then
        written[#written + 1] = name
        written[#written + 1] = type(value) == "number" and text(value) or value
    end
end
call("HSET", counters, unpack(written))
-- A room that nobody has asked for a month is forgotten.
for _, key in ipairs(KEYS) do
    call("PEXPIRE", key, KEPT)
end
local reply = {
    now = now, life = state.life, drawn = state.drawn, called = state.called, emptied = state.emptied,
    inside = count_inside, pending = count_called, open = state.open == 1, limits = limits, since = state.since,
    counts = { state.walked_in, state.drew, state.calls, state.came, state.lost, state.left, state.sent_away },
}
if #lotteries > 0 then reply.lotteries = lotteries end
if results and #results > 0 then reply.results = results end
if results then reply.done = true end
return cjson.encode(reply)
