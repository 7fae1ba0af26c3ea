-- Where states are kept as one string each: read all at once, and written with what is left of their lives.
local states = call("MGET", unpack(KEYS))

-- Whether a key is known; nil if something else has it.
local function find(nth)
    local stored = states[nth]
    if not stored then
        fresh()
        rate, rate_since, retuned = own, since, 0
        return false
    end
    if #stored < SHORTEST or stored:byte() ~= FORM then
        return nil
    end
    load(stored)
    return true
end

-- Whether it is written: what is no string looks as if it were not there, and stays as it is.
local function store(key, is_known)
    local state, micros = state()
    if is_known then
        return call("SET", key, state, "PX", lifetime(micros))
    end
    return call("SET", key, state, "PX", lifetime(micros), "NX")
end
