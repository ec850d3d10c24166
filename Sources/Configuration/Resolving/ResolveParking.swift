// Reads and checks the key `park`: calls that wait for an origin that is away.

import Policies

extension ParkPolicy {
    /// Nil where no call waits.
    init?(_ reader: SectionReader) {
        guard let time = reader.nanoseconds("time"), time > 0 else { return nil }
        self.init(time: time, calls: reader.int(always: "calls"), size: reader.bytes(always: "size"))
    }
}

extension Resolver {
    /// - Parameters:
    ///   - own: the service without what it inherited.
    ///   - service: with what it inherited.
    mutating func check(park own: SectionReader, _ service: ServiceConfiguration, _ baseURL: BaseURL?) {
        guard let place = own.place("park") else { return }
        if service.park == nil, own.section("park").entry("time") == nil {
            fail(place, "'park' needs 'park.time', which is not set; set it, or remove 'park'")
        }
        if service.park != nil, case .service(let name)? = baseURL {
            fail(place, "'park' is for a service with an origin of its own; set it in service '\(name)'")
        }
    }
}
