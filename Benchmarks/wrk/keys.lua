-- Asks for /k/0 to /k/(KEYS-1), the n-th of them 1/n as often as the first (Zipf): wrk ... -- KEYS.
-- A long series is drawn before the start, the same in every run, so that wrk has little to do for each request.

dofile(debug.getinfo(1, "S").source:match("^@(.*/)") .. "report.lua")
local series, at = {}, 0

function init(arguments)
    local keys, sums, total = tonumber(arguments[1]), {}, 0
    for n = 1, keys do
        total = total + 1 / n
        sums[n] = total
    end
    math.randomseed(1)
    for i = 1, 50000 do
        local wanted, low, high = math.random() * total, 1, keys
        while low < high do
            local middle = math.floor((low + high) / 2)
            if sums[middle] < wanted then low = middle + 1 else high = middle end
        end
        -- A key's rank says nothing about its number, nor about its length.
        series[i] = wrk.format("GET", "/k/" .. low * 7919 % keys)
    end
end

function request()
    at = at % #series + 1
    return series[at]
end
