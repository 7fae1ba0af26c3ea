-- When each accepted request of the last period came: never more than so many in any period.
--
-- join:    how many in a period
--          reply: d how many of those before count; d when the accepted ones came; dd when one more is accepted after the
--          last accepted one, and when a rejected one would be, in us; I2 unused
-- refund:  when the request was accepted, in us
--
-- State: a list of a head and the moments in us, the oldest first. Head: B FORM, d how many, dd the oldest and the newest,
-- d since, d retuned, I2 c0 rate.
local HEAD, SHORTEST = "<BdddddI2c0", 75
-- Most moments that are written by one command.
local MOST = 1000

local key, count, oldest, newest
-- Which index the oldest has: 0 while the head is taken off.
local first

local function find(nth)
    key = KEYS[nth]
    local head = redis.pcall("LINDEX", key, 0)
    if not head then
        count, oldest, newest, first = 0, 0, 0, 0
        rate, rate_since, retuned = own, since, 0
        return false
    end
    if type(head) == "table" or #head < SHORTEST or head:byte() ~= FORM then
        return nil
    end
    local _, rate_then, since_then, retuned_then
    _, count, oldest, newest, since_then, retuned_then, rate_then = read(HEAD, head)
    follow(rate_then, since_then, retuned_then)
    first = 1
    return true
end

local function age()
end

-- Takes the expired ones off: the head goes first and comes back last.
local function adopt()
    if count == 0 or oldest + rate.period > now then
        return
    end
    changed = true
    repeat
        call("LPOP", key, first == 1 and "2" or "1")
        first = 0
        count = count - 1
        oldest = count > 0 and tonumber(call("LINDEX", key, "0")) or 0
    until count == 0 or oldest + rate.period > now
end

local function store()
    local packed = rate.packed
    local head = pack(HEAD, FORM, count, oldest, newest, rate_since, retuned, #packed, packed)
    if first == 1 then
        call("LSET", key, "0", head)
    else
        call("LPUSH", key, head)
    end
    call("PEXPIRE", key, lifetime(max(newest + rate.period - now, 0)))
    return true
end

-- The nth of those that count, from 1 on.
local function moment(nth)
    return tonumber(call("LINDEX", key, format("%.0f", nth - 1 + first)))
end

local function add(many)
    local text = format("%.0f", newest)
    while many > 0 do
        local some, texts = min(many, MOST), {}
        for i = 1, some do
            texts[i] = text
        end
        call("RPUSH", key, unpack(texts))
        many = many - some
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

local function refund(cost, moment)
    local removed = call("LREM", key, format("%.0f", -cost), format("%.0f", moment))
    if removed == 0 then
        return false
    end
    count = count - removed
    if count > 0 then
        oldest = tonumber(call("LINDEX", key, "1"))
        newest = tonumber(call("LINDEX", key, "-1"))
    end
    return true
end
