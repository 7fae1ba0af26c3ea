-- When each accepted request of the last period came: never more than so many in any period.
--
-- join:    ARGV[5] how many in a period; ARGV[6] cost
--          reply: ..., how many of those before count, when one more is accepted in us: of this cost if it is not
-- refund:  ARGV[5] when the request was accepted, in us; ARGV[6] cost
--
-- State: a list of "rate|since|retuned", and the moments in us, the oldest first.
local force
local header = redis.call("LINDEX", KEYS[1], 0)
if header then
    local fields = split(header, "|")
    force = { rate = pace(fields[1]), since = tonumber(fields[2]), retuned = tonumber(fields[3]) }
else
    force = fresh()
end

if ARGV[1] == "refund" then
    return answer(redis.call("LREM", KEYS[1], -tonumber(ARGV[6]), ARGV[5]) > 0, force)
end

local before = settle(force)

-- Takes the expired ones off: the header goes first and comes back last.
local oldest = tonumber(redis.call("LINDEX", KEYS[1], 1) or nil)
if oldest and oldest + force.rate.period <= now then
    redis.call("LPOP", KEYS[1])
    while oldest and oldest + force.rate.period <= now do
        redis.call("LPOP", KEYS[1])
        oldest = tonumber(redis.call("LINDEX", KEYS[1], 0) or nil)
    end
    redis.call("LPUSH", KEYS[1], "-")
end

local counting = max(redis.call("LLEN", KEYS[1]) - 1, 0)
local most, cost = allowed(force, tonumber(ARGV[5])), tonumber(ARGV[6])
local accepted = counting < allowed_for(cost, most)
local one_more_at = now
if accepted then
    -- A clock that was set back stays where it was.
    if counting > 0 then
        now = max(now, tonumber(redis.call("LINDEX", KEYS[1], -1)))
    end
    if redis.call("LLEN", KEYS[1]) == 0 then
        redis.call("RPUSH", KEYS[1], "-")
    end
    for _ = 1, cost do
        redis.call("RPUSH", KEYS[1], string.format("%.0f", now))
    end
else
    most = allowed_for(cost, most)
end
local others = counting + (accepted and cost or 0)
if others >= most then
    one_more_at = tonumber(redis.call("LINDEX", KEYS[1], others + 1 - most)) + force.rate.period
end
if redis.call("LLEN", KEYS[1]) > 0 then
    redis.call("LSET", KEYS[1], 0,
        string.format("%s|%.0f|%.0f", force.rate.text, force.since, force.retuned))
    local last = tonumber(redis.call("LINDEX", KEYS[1], -1)) or now
    redis.call("PEXPIRE", KEYS[1], lifetime(last + force.rate.period - now))
end
return answer(accepted, force, counting, one_more_at)
