// `/v1/demo`: demo mode while the daemon runs.

package import AdminAPI
package import Configuration
import HTTPWire

/// What `POST /v1/demo` asks for.
package struct DemoOrder: Sendable, Equatable {
    /// Nil: all services.
    package var service: String?
    /// Nil: the whole service.
    package var endpoint: String?
    /// What is changed; nothing where what was changed is taken back.
    package var settings: [DemoSetting] = []
    /// Seconds; nil: until it is taken back, or the configuration is read again.
    package var seconds: Int64?

    package init(service: String? = nil, endpoint: String? = nil) {
        self.service = service
        self.endpoint = endpoint
    }

    /// `service=`, `endpoint=` and `for=` with at least one of `enabled=on|off`, `latency=`, `status=`,
    /// `chance=` and `faults=`; or `clear`.
    init(members: [(name: String, value: String)]) throws(Problem) {
        var clears = false
        for (name, value) in members {
            switch name {
            case "service" where !value.isEmpty && service == nil: service = value
            case "endpoint" where !value.isEmpty && endpoint == nil: endpoint = value
            case "clear" where value.isEmpty: clears = true
            case "for" where seconds == nil:
                do throws(Lifetimes.Malformed) { seconds = try Lifetimes.seconds(value) } catch {
                    throw .badQuery("for: \(error)")
                }
                if seconds == 0 { throw .badQuery("for: 0s is no time; write 1s or more") }
            default:
                guard let key = DemoSetting.Key(rawValue: name), !settings.contains(where: { $0.key == key }) else {
                    throw .badQuery(
                        "\(name) is not known, empty, or given twice; there are service, endpoint, "
                            + "\(DemoSetting.Key.names), for and clear"
                    )
                }
                do throws(Lifetimes.Malformed) { settings.append(try DemoSetting(key, value)) } catch {
                    throw .badQuery("\(name): \(error)")
                }
            }
        }
        if endpoint != nil, service == nil {
            throw .badQuery("an endpoint is one of a service: give service=NAME, too")
        }
        if clears != settings.isEmpty || clears && seconds != nil {
            throw .badQuery(
                "give one or more of \(DemoSetting.Key.names), with for=DURATION or not; or clear"
            )
        }
    }
}

/// Implemented where the daemon is put together.
package protocol DemoActions: Sendable {
    func demo() async -> AdminDemo
    /// Returns when every loop answers by it.
    /// - Throws: that there is no such service or endpoint, that it has no demo answers, or that they cannot be read.
    func change(_ order: DemoOrder) async throws(Problem) -> AdminDemo
    /// Sets back what demo answers, faults and quotas of a service remember, or of all services.
    /// - Parameters:
    ///   - journal: its entries are removed, too.
    ///   - latencies: what origins took is forgotten, too.
    /// - Throws: that there is no such service.
    func reset(service: String?, journal: Bool, latencies: Bool) async throws(Problem) -> AdminDemoReset
    /// Draws once more what Drydock-Demo said.
    /// - Parameter service: whose rules are meant; nil: those of all.
    /// - Throws: that there is no such service, or no draw in what was said.
    func draw(again said: String, service: String?) async throws(Problem) -> AdminDraw
}

extension DemoActions {
    package var demoRoutes: [AdminRoute] {
        [
            AdminRoute(.get, .demo) { request async throws(Problem) in
                guard request.queryItems.isEmpty else { throw .badQuery("the state of demo mode takes no query") }
                return try .json(await self.demo())
            },
            AdminRoute(.post, .demo) { request async throws(Problem) in
                try .json(await self.change(try DemoOrder(members: request.queryItems)))
            },
            AdminRoute(.post, .resetDemo) { request async throws(Problem) in
                var (service, journal, latencies) = (nil as String?, false, false)
                for (name, value) in request.queryItems {
                    switch name {
                    case "service" where !value.isEmpty && service == nil: service = value
                    case "journal" where value.isEmpty: journal = true
                    case "latencies" where value.isEmpty: latencies = true
                    default: throw .badQuery("give service=NAME, journal, latencies, several of these or nothing")
                    }
                }
                return try .json(
                    await self.reset(service: service, journal: journal, latencies: latencies)
                )
            },
            AdminRoute(.get, .draw) { request async throws(Problem) in
                var (service, said) = (nil as String?, nil as String?)
                for (name, value) in request.queryItems {
                    switch name {
                    case "service" where !value.isEmpty && service == nil: service = value
                    case "said" where !value.isEmpty && said == nil: said = value
                    default: throw .badQuery("give said=VALUE, the value of Drydock-Demo, with service=NAME or not")
                    }
                }
                guard let said else { throw .badQuery("give said=VALUE, the value of Drydock-Demo") }
                return try .json(await self.draw(again: said, service: service))
            },
        ]
    }
}
