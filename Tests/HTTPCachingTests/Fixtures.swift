// Heads, times and a seeded generator that the tests of the caching rules share.

import HTTPWire

@testable import HTTPCaching

/// Fri, 13 Feb 2009 23:31:30 GMT, the moment at which fixtures arrive.
let arrival: Int64 = 1_234_567_890

/// An HTTP-date `offset` seconds from the arrival.
func date(_ offset: Int64 = 0) -> String { HTTPDate.format(arrival + offset) }

func request(_ method: HTTPWire.Method = .get, _ fields: [(String, String)] = []) -> RequestHead {
    RequestHead(method: method, target: "/", version: .http11, fields: Fields(fields))
}

/// A response with Date at the arrival, unless `fields` bring one.
func response(_ status: Int = 200, _ fields: [(String, String)] = []) -> ResponseHead {
    var all = Fields(fields)
    if !all.contains(.date) { all.set(.date, date()) }
    return ResponseHead(status: status, reason: "", version: .http11, fields: all)
}

/// What is stored of a response to a GET that took no time.
func stored(
    _ fields: [(String, String)] = [],
    status: Int = 200,
    for request: RequestHead = request(),
    policy: CachePolicy = CachePolicy()
) -> StoredHead {
    Caching.makeStoredHead(
        request: request,
        response: response(status, fields),
        times: ResponseTimes(at: arrival),
        policy: policy
    )
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
