-- The keys that wait before the grid of an origin. A key that waits at n gateways counts 1/n of its weight at each, so its
-- turns are those of one. `grid.lua` is behind this, and calls it.
--
-- Beside the grid (field g), the hash has a field for each key that a gateway has told: what its name hashes to, and for each
-- gateway where it waits
--   I2 B     the gateway's number, the key's weight there
-- A gateway tells what has changed since its last claim that was answered. Its claims have numbers, and it says which was
-- answered last. If the store knows less than that, or a gateway with keys is silent, all keys are forgotten: there is a new
-- generation, and each gateway tells all its keys again. Until then they count whole.
local concat, floor = table.concat, math.floor
local read, pack, call = struct.unpack, struct.pack, redis.call

-- Parts of keys are whole numbers, so that sums are exact.
local PARTS = 720720
-- More bytes of news are not kept for a gateway; it is told to ask for all again, by a key that is none.
local MOST_NEWS = 60000
local ASK_AGAIN = pack("<I4I4I2", 0, 0, 0)

local function part_of(weight, gateways)
    return floor(weight * PARTS / gateways + 0.5)
end

-- What counts of a class at a gateway: { name's hash, weight, weights that wait, weights of told keys, their parts }. Of a
-- class without weight nothing waits.
local function counted(class)
    return math.min(class[3], math.max(class[3] - class[4], 0) + class[5] / PARTS)
end

local function class_of(gateway, name)
    for _, class in ipairs(gateway.classes) do
        if class[1] == name then
            return class
        end
    end
    local class = { name, 0, 0, 0, 0 }
    gateway.classes[#gateway.classes + 1] = class
    return class
end

-- The classes of this claim, and of those before it the ones with keys that were told.
local function renew_classes(gateway, claimed)
    local before = gateway.classes
    gateway.classes = claimed
    for _, class in ipairs(before) do
        if class[4] > 0 then
            local now = class_of(gateway, class[1])
            now[4], now[5] = class[4], class[5]
        end
    end
end

local function forget_keys(gateways)
    for _, gateway in ipairs(gateways) do
        local left = {}
        for _, class in ipairs(gateway.classes) do
            class[4], class[5] = 0, 0
            if class[2] > 0 then
                left[#left + 1] = class
            end
        end
        gateway.classes, gateway.keys, gateway.sent, gateway.news, gateway.raw = left, 0, 0, "", nil
    end
end

local function lowest_free_number(gateways)
    local taken = {}
    for _, gateway in ipairs(gateways) do
        taken[gateway.number] = true
    end
    local number = 0
    while taken[number] do
        number = number + 1
    end
    return number
end

-- Notes `many` changes, which are packed from `at` on: c8 I4 B, the key, its class's hash, and its weight; 0: it waits no
-- longer. Returns the fields to set, and those to delete.
local function note_changes(key, gateways, own, packed, at, many)
    local set, gone = {}, {}
    if many == 0 then
        return set, gone
    end
    local names, classes, weights = {}, {}, {}
    for nth = 1, many do
        names[nth], classes[nth], weights[nth], at = read("<c8I4B", packed, at)
    end
    local by_number = {}
    for _, gateway in ipairs(gateways) do
        by_number[gateway.number] = gateway
    end
    local function post(gateway, name, count)
        gateway.posts = gateway.posts or {}
        gateway.posts[#gateway.posts + 1] = name .. pack("<I2", count)
    end
    local found = call("HMGET", key, unpack(names))
    for nth, name in ipairs(names) do
        local others, weight, had = found[nth] or "", weights[nth], nil
        local before = #others / 3
        for from = 1, #others, 3 do
            local low, high, known = others:byte(from, from + 2)
            if low + 256 * high == own.number then
                had, others = known, others:sub(1, from - 1) .. others:sub(from + 3)
                break
            end
        end
        local after = #others / 3 + (weight > 0 and 1 or 0)
        local class = class_of(own, classes[nth])
        if had then
            class[4], class[5] = class[4] - had, class[5] - part_of(had, before)
            own.keys = own.keys - 1
        end
        if weight > 0 then
            class[4], class[5] = class[4] + weight, class[5] + part_of(weight, after)
            own.keys = own.keys + 1
            post(own, name, after)
        end
        if after ~= before then
            for from = 1, #others, 3 do
                local low, high, known = others:byte(from, from + 2)
                local other = by_number[low + 256 * high]
                local of_other = class_of(other, classes[nth])
                of_other[5] = of_other[5] + part_of(known, after) - part_of(known, before)
                post(other, name, after)
                other.raw = nil
            end
        end
        if after > 0 then
            set[#set + 1] = name
            set[#set + 1] = weight > 0 and others .. pack("<I2B", own.number, weight) or others
        elseif had then
            gone[#gone + 1] = name
        end
    end
    for _, gateway in ipairs(gateways) do
        if gateway.posts then
            gateway.news = gateway.news .. concat(gateway.posts)
            if #gateway.news > MOST_NEWS then
                gateway.news, gateway.sent = ASK_AGAIN, 0
            end
        end
    end
    return set, gone
end

